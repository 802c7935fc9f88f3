import { useEffect, useState, type RefObject } from 'react';

import type { Dependency } from './deployments';

interface Props {
  /** The container of the steps' bars: each is an svg with its step's id as data-step, and a rect. */
  within: RefObject<HTMLElement | null>;
  dependencies: Dependency[];
  /** The steps that decided how long all took. */
  path: Set<string>;
  /** The step that is pointed at: everything that it waited for, or that waited for it, is shown. */
  active: string;
}

interface Line extends Dependency {
  d: string;
}

/**
 * Lines from the end of a step to the beginning of its dependents. They are drawn over the table; its cells have the
 * same in words.
 */
export function Links({ within, dependencies, path, active }: Props) {
  const [lines, setLines] = useState<Line[]>([]);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useEffect(() => {
    const root = within.current;
    if (!root) return;
    const measure = () => {
      const origin = root.getBoundingClientRect();
      const bars = new Map<string, DOMRect>();
      for (const bar of root.querySelectorAll<SVGElement>('svg[data-step] > rect')) {
        bars.set(bar.parentElement?.dataset.step ?? '', bar.getBoundingClientRect());
      }
      setSize({ width: origin.width, height: origin.height });
      setLines(
        dependencies.flatMap((one) => {
          const [from, to] = [bars.get(one.from), bars.get(one.to)];
          return from && to ? [{ ...one, d: lineBetween(from, to, origin) }] : [];
        }),
      );
    };
    const observer = new ResizeObserver(measure);
    observer.observe(root);
    measure();
    return () => observer.disconnect();
  }, [within, dependencies]);
  const isStrong = (line: Line) =>
    active === '' ? path.has(line.from) && path.has(line.to) && line.decisive : line.from === active || line.to === active;
  // Strong lines are drawn last, over the others.
  const shown = lines
    .filter((line) => line.decisive || line.from === active || line.to === active)
    .sort((a, b) => Number(isStrong(a)) - Number(isStrong(b)));
  return (
    <svg className="burano-links" aria-hidden width={size.width} height={size.height}>
      {shown.map((line) => (
        <path key={`${line.from} ${line.to}`} d={line.d} className={isStrong(line) ? 'burano-link burano-link-strong' : 'burano-link'} />
      ))}
    </svg>
  );
}

type Box = Pick<DOMRect, 'left' | 'right' | 'top' | 'bottom'>;

/** Down, or up, from the end of one bar, and over to the beginning of another, to the hundredth of a pixel. */
export function lineBetween(from: Box, to: Box, origin: Pick<DOMRect, 'left' | 'top'>): string {
  const round = (value: number) => Math.round(value * 100) / 100;
  const down = to.top >= from.top;
  const begin = { x: round(from.right - origin.left), y: round((down ? from.bottom : from.top) - origin.top) };
  const x = round(to.left - origin.left);
  // One that begins as soon as the other has ended is met from above or below, else at its beginning.
  if (Math.abs(x - begin.x) < 2) return `M${begin.x} ${begin.y}V${round((down ? to.top : to.bottom) - origin.top)}`;
  return `M${begin.x} ${begin.y}V${round((to.top + to.bottom) / 2 - origin.top)}H${x}`;
}
