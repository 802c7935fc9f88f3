import { useEffect } from 'react';

/** The title of the browser's tab: the heading of the page, which pages show when they have their data. */
export function useTabTitle(product: string): void {
  useEffect(() => {
    let frame = 0;
    const show = () => {
      frame = 0;
      const heading = document.querySelector('main h1')?.textContent.trim();
      const title = heading ? `${heading} · ${product}` : product;
      if (document.title !== title) document.title = title;
    };
    const later = () => (frame ||= requestAnimationFrame(show));
    const watch = new MutationObserver(later);
    watch.observe(document.body, { childList: true, subtree: true });
    later();
    return () => {
      watch.disconnect();
      cancelAnimationFrame(frame);
    };
  }, [product]);
}
