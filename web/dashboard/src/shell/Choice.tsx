import { Checkbox } from '@patternfly/react-core';
import { Td, Th } from '@patternfly/react-table';
import { useId } from 'react';

interface Props {
  /** The chosen object, for screen readers. */
  label: string;
  isChosen: boolean;
  onChoose: (on: boolean) => void;
}

/** The cell in which a row is chosen. A table's own checkbox is only labelled "Select row 3", in every language. */
export const ChoiceCell = (props: Props) => (
  <Td className="pf-v6-c-table__check">
    <Choice {...props} />
  </Td>
);

/** The cell of the head in which all rows are chosen. */
export const ChoiceOfAll = (props: Props) => (
  <Th className="pf-v6-c-table__check" screenReaderText={props.label}>
    <Choice {...props} />
  </Th>
);

function Choice({ label, isChosen, onChoose }: Props) {
  const id = useId();
  return <Checkbox id={id} aria-label={label} isChecked={isChosen} onChange={(_event, on) => onChoose(on)} />;
}
