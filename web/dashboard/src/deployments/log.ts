// Reports as a log: the shown part, and the form in a file.
import type { Report } from '../api/follow';
import { parseTime } from '../api/time';

export const levels = ['info', 'warning', 'error'] as const;

export type Level = (typeof levels)[number];

export interface Filter {
  /** At least as bad as this. */
  level: Level;
  /** The id of the object that reports are about; '' for all. */
  object: string;
  /** Words of text or details, in any case. */
  words: string;
}

export const everything: Filter = { level: 'info', object: '', words: '' };

export function filtered(reports: Report[], { level, object, words }: Filter): Report[] {
  const least = levels.indexOf(level);
  const wanted = words.trim().toLowerCase();
  if (least === 0 && !object && !wanted) return reports;
  return reports.filter(
    (report) =>
      levels.indexOf(report.level ?? 'info') >= least &&
      (!object || report.entity_id === object) &&
      (!wanted || `${report.text ?? ''}\n${report.details ?? ''}`.toLowerCase().includes(wanted)),
  );
}

/** The objects that reports are about, in the order in which they come. */
export function reporters(reports: Report[]): string[] {
  return [...new Set(reports.flatMap((report) => (report.entity_id ? [report.entity_id] : [])))];
}

/** Reports as lines of text: time in UTC, level, object, text. */
export function logText(reports: Report[], names: Map<string, string>): string {
  return reports
    .map((report) => {
      const about = names.get(report.entity_id ?? '') ?? report.entity ?? '';
      const head = [parseTime(report.created ?? '').toISOString(), (report.level ?? 'info').toUpperCase(), ...(about ? [`${about}:`] : [])].join(' ');
      const details = report.details ? `\n${report.details.replace(/^/gm, '    ')}` : '';
      return `${head} ${report.text ?? ''}${details}\n`;
    })
    .join('');
}

/** Cuts a list into pieces of a size, so that only visible ones need be rendered. */
export function pieces<T>(list: T[], size: number): T[][] {
  const cut: T[][] = [];
  for (let from = 0; from < list.length; from += size) cut.push(list.slice(from, from + size));
  return cut;
}
