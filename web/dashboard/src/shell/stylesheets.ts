// A stylesheet that does not load is no reason to show no page: it is asked for once more, and the page is shown meanwhile.
const missing = /^Unable to preload CSS for (\S+)$/;

/** Handles the event by which Vite reports a part of a page that does not load (https://vite.dev/guide/build#load-error-handling). */
export function askAgain(event: Event & { payload?: Error }): void {
  const [, address] = missing.exec(event.payload?.message ?? '') ?? [];
  if (!address) return;
  event.preventDefault();
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = address;
  document.head.appendChild(link);
}
