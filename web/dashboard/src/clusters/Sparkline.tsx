import { linePoints } from './traffic';

const width = 96;
const height = 24;

/**
 * A line through the values of the last two minutes, the newest at the right. Words beside it have the same content.
 */
export const Sparkline = ({ values, label }: { values: number[]; label: string }) => (
  <svg className="burano-sparkline" role="img" aria-label={label} width={width} height={height + 2} viewBox={`0 -1 ${width} ${height + 2}`}>
    <polyline points={linePoints(values, width, height)} />
  </svg>
);
