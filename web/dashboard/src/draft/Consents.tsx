import { Alert, Checkbox } from '@patternfly/react-core';
import { useId } from 'react';

import { useText } from '../text';
import { agreeing, keyOf, type Consent } from './plan';

interface Props {
  consents: Consent[];
  agreed: ReadonlySet<string>;
  onAgree: (agreed: ReadonlySet<string>) => void;
}

/** Asks a user to agree to each loss. */
export function Consents({ consents, agreed, onAgree }: Props) {
  const words = useText().draft;
  const id = useId();
  if (consents.length === 0) return null;
  return (
    <Alert variant="warning" isInline className="burano-spaced" title={<span id={id}>{words.consents(consents.length)}</span>}>
      <div role="group" aria-labelledby={id}>
        {consents.map((one, i) => (
          <Checkbox
            key={keyOf(one)}
            id={`${id}-${i}`}
            label={<span className="burano-breaks">{one.message}</span>}
            isChecked={agreed.has(keyOf(one))}
            onChange={(_event, on) => onAgree(agreeing(agreed, one, on))}
          />
        ))}
      </div>
    </Alert>
  );
}
