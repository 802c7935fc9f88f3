// A container's log as it is written, and its printable text.
import { useEffect, useReducer } from 'react';

/** How many lines stay in the page; older ones go. */
export const mostLines = 5_000;

/** How long a line may be; the rest is left out. */
export const longestLine = 2_000;

/** The interval of showing new lines, in milliseconds. */
const showEvery = 200;

export interface LogLine {
  time: string;
  text: string;
}

export interface Tail {
  lines: LogLine[];
  /** How many lines were there and are gone. */
  gone: number;
  /** The state of a container that does not run; '' while it runs. */
  state: string;
  ended: boolean;
  /** False while the stream is cut off; the browser asks for it again by itself, from the last line on. */
  connected: boolean;
}

type Event =
  | { kind: 'reset' }
  | { kind: 'lines'; lines: LogLine[] }
  | { kind: 'state'; state: string; ended: boolean }
  | { kind: 'connected'; connected: boolean };

export const empty: Tail = { lines: [], gone: 0, state: '', ended: false, connected: false };

export function tailed(now: Tail, event: Event): Tail {
  switch (event.kind) {
    case 'reset':
      return empty;
    case 'lines': {
      const all = [...now.lines, ...event.lines];
      const excess = Math.max(all.length - mostLines, 0);
      return { ...now, lines: excess > 0 ? all.slice(excess) : all, gone: now.gone + excess, state: '' };
    }
    case 'state':
      return { ...now, state: event.state, ended: event.ended };
    case 'connected':
      return { ...now, connected: event.connected };
  }
}

/** Follows a log until its pod ends or the component goes; '' follows nothing. */
export function useTail(address: string): Tail {
  const [now, dispatch] = useReducer(tailed, empty);
  useEffect(() => {
    dispatch({ kind: 'reset' });
    if (!address) return;
    const source = new EventSource(address);
    // A pod may write faster than a page can be drawn.
    let waiting: LogLine[] = [];
    let timer = 0;
    const flush = () => {
      timer = 0;
      const lines = waiting;
      waiting = [];
      if (lines.length > 0) dispatch({ kind: 'lines', lines });
    };
    const stateOf = (event: MessageEvent<string>) => (JSON.parse(event.data) as { state: string }).state;
    source.onopen = () => dispatch({ kind: 'connected', connected: true });
    source.onerror = () => dispatch({ kind: 'connected', connected: false });
    source.addEventListener('lines', (event: MessageEvent<string>) => {
      waiting.push(...(JSON.parse(event.data) as { lines: LogLine[] }).lines);
      if (waiting.length > mostLines) waiting = waiting.slice(-mostLines);
      timer ||= window.setTimeout(flush, showEvery);
    });
    source.addEventListener('state', (event: MessageEvent<string>) => {
      flush();
      dispatch({ kind: 'state', state: stateOf(event), ended: false });
    });
    source.addEventListener('end', (event: MessageEvent<string>) => {
      source.close();
      window.clearTimeout(timer);
      flush();
      dispatch({ kind: 'state', state: stateOf(event), ended: true });
    });
    return () => {
      source.close();
      window.clearTimeout(timer);
    };
  }, [address]);
  return now;
}

// Commands of terminals (ECMA-48): colours, cursors, titles, links.
const commands = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]/g;
// Invisible characters, and ones that change the direction: control characters except the tab, and marks of
// right-to-left writing.
const unseen = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The shown part of a line: its text without commands of terminals, for any output of a pod. */
export function plainLine(text: string): string {
  const clean = text.replace(commands, '').replace(unseen, '\u00b7');
  return clean.length > longestLine ? `${clean.slice(0, longestLine)}…` : clean;
}

/** The lines that hold the words, as they are shown; with the time before each where that is wanted. */
export function shownLines(lines: LogLine[], words: string, time: ((text: string) => string) | null): string[] {
  const wanted = words.toLowerCase();
  const list: string[] = [];
  for (const line of lines) {
    const text = plainLine(line.text);
    if (text.toLowerCase().includes(wanted)) list.push(time ? `${time(line.time)}  ${text}` : text);
  }
  return list;
}
