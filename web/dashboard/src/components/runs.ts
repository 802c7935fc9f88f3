// An object's reports, run by run.
import type { Schema } from '../api/client';

type Report = Schema<'Report'>;

export interface Run {
  task: string;
  /** The oldest first. */
  reports: Report[];
}

/** Puts reports, which come the newest first, together by their runs; the newest run stays the first. */
export function byRun(reports: Report[]): Run[] {
  const runs = new Map<string, Report[]>();
  for (const report of reports) {
    const task = report.task_id ?? '';
    runs.set(task, [report, ...(runs.get(task) ?? [])]);
  }
  return [...runs].map(([task, list]) => ({ task, reports: list }));
}
