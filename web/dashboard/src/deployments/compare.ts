// Two runs side by side: the durations of their steps, and the differences of the deployed models.
import { differencesOf, type Difference } from '../draft/differences';
import { nameOf, type ObjectModel } from '../environments/environments';
import { walk } from '../environments/objects';
import type { Step } from './deployments';

export interface ComparedStep {
  object: string;
  class: string;
  name: string;
  /** Seconds in each run; null where it did not run, or has not ended. */
  before: number | null;
  after: number | null;
}

/**
 * The steps of two runs by object and name, the ones that differ most first. A step that ran more than once counts as
 * a whole.
 */
export function comparedSteps(before: Step[], after: Step[]): ComparedStep[] {
  const rows = new Map<string, ComparedStep>();
  const add = (steps: Step[], side: 'before' | 'after') => {
    for (const step of steps) {
      const key = `${step.object} ${step.name}`;
      const row = rows.get(key) ?? { object: step.object ?? '', class: step.class ?? '', name: step.name ?? '', before: null, after: null };
      if (typeof step.seconds === 'number') row[side] = (row[side] ?? 0) + step.seconds;
      rows.set(key, row);
    }
  };
  add(before, 'before');
  add(after, 'after');
  const differs = (row: ComparedStep) => Math.abs((row.after ?? 0) - (row.before ?? 0));
  return [...rows.values()].sort((a, b) => differs(b) - differs(a));
}

export type Verdict = 'slower' | 'faster' | 'same' | 'new' | 'gone';

/** The comparison of a step. Less than a second, or than a tenth of it, is no difference. */
export function verdict({ before, after }: ComparedStep): Verdict {
  if (before === null) return 'new';
  if (after === null) return 'gone';
  const difference = after - before;
  if (Math.abs(difference) < Math.max(1, before * 0.1)) return 'same';
  return difference > 0 ? 'slower' : 'faster';
}

export interface ObjectChange {
  id: string;
  name: string;
  change: 'added' | 'changed' | 'removed';
  properties: Difference[];
}

/** The differences between two descriptions. */
export function changesBetween(before: unknown, after: unknown): ObjectChange[] {
  const [old, now] = [objectsOf(before), objectsOf(after)];
  const names = new Map([...old, ...now].map(([id, object]) => [id, nameOf(object)]));
  const changes: ObjectChange[] = [];
  for (const [id, object] of now) {
    const former = old.get(id);
    if (!former) changes.push({ id, name: nameOf(object), change: 'added', properties: [] });
    else {
      const properties = differing(former, object, names);
      if (properties.length > 0) changes.push({ id, name: nameOf(object), change: 'changed', properties });
    }
  }
  for (const [id, object] of old) if (!now.has(id)) changes.push({ id, name: nameOf(object), change: 'removed', properties: [] });
  return changes;
}

function objectsOf(model: unknown): Map<string, ObjectModel> {
  const objects = new Map<string, ObjectModel>();
  walk(model, (object) => objects.set(object['?']?.id ?? '', object));
  return objects;
}

function differing(before: ObjectModel, after: ObjectModel, names: Map<string, string>): Difference[] {
  const [was, is] = [before as Record<string, unknown>, after as Record<string, unknown>];
  const properties = new Set([...Object.keys(was), ...Object.keys(is)]);
  properties.delete('?');
  return [...properties].flatMap((name) => differencesOf(name, was[name], is[name], names));
}
