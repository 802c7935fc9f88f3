// Actions in groups, for objects that offer many.
import { losesData, type Action } from './actions';

/** The groups in their order; those whose actions lose something come after the harmless ones, deprecated actions last. */
export const kinds = ['nodes', 'versions', 'data', 'security', 'others', 'losses', 'deprecated'] as const;

export type Kind = (typeof kinds)[number];

/** Words of methods, and the group of the first that is met. */
const words: [RegExp, Kind][] = [
  [/backup|snapshot|restore|claim|volume|dump/i, 'data'],
  [/certificate|rotate|password|secret|token|key/i, 'security'],
  [/upgrade|rollout|rollback|revision|version|image/i, 'versions'],
  [/node|group|gateway|master|scale|machine|replica/i, 'nodes'],
];

export function kindOf(action: Action): Kind {
  if (action.deprecated) return 'deprecated';
  if (losesData(action)) return 'losses';
  return words.find(([word]) => word.test(action.method))?.[1] ?? 'others';
}

/** The actions that have all the words, by group; empty groups are left out. */
export function grouped(actions: Action[], search: string): [Kind, Action[]][] {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = actions.filter(({ title, description, method }) => {
    const text = `${title} ${description} ${method}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  return kinds.map((kind): [Kind, Action[]] => [kind, found.filter((action) => kindOf(action) === kind)]).filter(([, list]) => list.length > 0);
}
