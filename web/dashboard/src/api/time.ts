// Times of the API in the viewer's zone and language.

/** Reads a time of /v1, which is UTC without a mark, or one with a zone. */
export function parseTime(text: string): Date {
  return new Date(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
}

export function showTime(text: string | null | undefined, language: string): string {
  if (!text) return '';
  return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(parseTime(text));
}

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** Shows the age of a time: "3 minutes ago". */
export function showAge(text: string | null | undefined, language: string, now = Date.now()): string {
  if (!text) return '';
  const seconds = Math.round((parseTime(text).getTime() - now) / 1000);
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1];
  return new Intl.RelativeTimeFormat(language, { numeric: 'auto' }).format(Math.trunc(seconds / size), unit);
}

/** Shows a duration: "1 min 5 s". */
export function showSpan(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
