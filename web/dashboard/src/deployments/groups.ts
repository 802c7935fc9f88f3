// The steps of a deployment by servers.
import type { Step } from './deployments';

/** Steps of one server, or of one object. */
export interface Group {
  name: string;
  steps: Step[];
  failed: number;
  isRunning: boolean;
}

const server = /^([\w.-]+): /;

/** The steps by their servers, else by their objects, whose names called returns; in the order of their first steps. */
export function groupsOf(steps: Step[], called: (step: Step) => string): Group[] {
  const groups = new Map<string, Group>();
  for (const step of steps) {
    const name = server.exec(step.name ?? '')?.[1] ?? called(step);
    const group = groups.get(name) ?? { name, steps: [], failed: 0, isRunning: false };
    group.steps.push(step);
    group.failed += step.error ? 1 : 0;
    group.isRunning ||= !step.finished;
    groups.set(name, group);
  }
  return [...groups.values()];
}

/** Whether a group is open before the user decides: while the deployment runs, after a failure in it, or when it is the only one. */
export const isOpenAtFirst = (group: Group, groups: Group[], running: boolean): boolean => running || group.failed > 0 || groups.length === 1;

/** A part of the line of time, in percent. */
export interface Place {
  from: number;
  width: number;
}

/** The part of the line of time that the bars of a group cover. */
export function spanOf(places: Place[]): Place {
  const from = Math.min(...places.map((place) => place.from));
  return { from, width: Math.max(...places.map((place) => place.from + place.width)) - from };
}

/** The seconds from the first start to the last end of steps; to now, in milliseconds, if one runs. */
export function lasted(steps: Step[], now: number): number {
  const start = Math.min(...steps.map((step) => Date.parse(step.started ?? '')));
  const end = Math.max(...steps.map((step) => (step.finished ? Date.parse(step.finished) : now)));
  return Math.max((end - start) / 1000, 0);
}
