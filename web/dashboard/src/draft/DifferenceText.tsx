import { useText } from '../text';
import type { Difference, Leaf } from './differences';

/** How much of a long text is shown. */
const most = 1_000;

/** A changed value: its path, its former and its present value. */
export function DifferenceText({ difference: { path, before, after, secret } }: { difference: Difference }) {
  const text = useText();
  const words = text.draft;
  if (secret) return <>{words.hiddenValue(path)}</>;
  const shown = (leaf: Leaf): string => {
    if (leaf === null || leaf === '') return words.noValue;
    if (typeof leaf === 'boolean') return leaf ? text.components.yes : text.components.no;
    const whole = Array.isArray(leaf) ? leaf.map(shown).join(', ') : String(leaf);
    return whole.length > most ? `${whole.slice(0, most)}…` : whole;
  };
  return (
    <>
      {path}: <del className="burano-value">{shown(before)}</del> → <ins className="burano-value">{shown(after)}</ins>
    </>
  );
}
