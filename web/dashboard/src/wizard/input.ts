import type { Field } from './values';

/** What every input of a field gets. */
export interface InputProps {
  id: string;
  field: Field;
  value: unknown;
  isWrong: boolean;
  onChange: (value: unknown) => void;
  onLeave: () => void;
}
