// The deployments that users at this browser wait for: all its tabs know them, and one of them reports their ends.

type Memory = Pick<Storage, 'getItem' | 'setItem'>;

const key = 'burano.watched';

/** The maximum number of watched deployments; the oldest are dropped. */
const most = 50;

export function watchedIn(memory: Memory): string[] {
  try {
    const ids: unknown = JSON.parse(memory.getItem(key) ?? '[]');
    return Array.isArray(ids) ? ids.filter((id) => typeof id === 'string') : [];
  } catch {
    return [];
  }
}

const keep = (memory: Memory, ids: string[]) => memory.setItem(key, JSON.stringify(ids.slice(-most)));

export function watch(memory: Memory, deployment: string): void {
  const ids = watchedIn(memory);
  if (deployment && !ids.includes(deployment)) keep(memory, [...ids, deployment]);
}

export function unwatch(memory: Memory, deployment: string): void {
  const ids = watchedIn(memory);
  if (ids.includes(deployment)) keep(memory, ids.filter((id) => id !== deployment));
}
