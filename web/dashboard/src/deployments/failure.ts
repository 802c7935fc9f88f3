// Why a deployment failed.
import type { Report } from '../api/follow';

/** One reason of a failure. */
export interface Cause {
  sentence: string;
  /** The id of the object that failed; '' where none is known. */
  object: string;
}

/** The errors among reports, each once, in their order. */
export function causesOf(reports: Report[]): Cause[] {
  const causes = new Map<string, Cause>();
  for (const report of reports) {
    if (report.level !== 'error') continue;
    const cause = { sentence: sentenceOf(report), object: report.entity_id ?? '' };
    causes.set(`${cause.object} ${cause.sentence}`, cause);
  }
  return [...causes.values()];
}

const method = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+: /;
const exceptions = /^\[[\w., ]+\]: /;

/** The sentence of an error without the method that it comes from and the names of an exception; the log has both. */
export function sentenceOf({ text = '', entity_id: about }: Pick<Report, 'text' | 'entity_id'>): string {
  const rest = text.replace(method, '');
  const sentence = rest.replace(exceptions, '');
  if (sentence !== rest) return sentence;
  return about ? rest : text; // a name with dots may be that of a host
}
