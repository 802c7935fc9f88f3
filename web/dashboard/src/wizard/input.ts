import type { Field } from './values';

/** The common properties of fields' inputs. */
export interface InputProps {
  id: string;
  field: Field;
  value: unknown;
  isWrong: boolean;
  onChange: (value: unknown) => void;
  onLeave: () => void;
}
