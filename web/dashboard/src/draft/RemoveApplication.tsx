import { Button } from '@patternfly/react-core';
import { TrashIcon } from '@patternfly/react-icons';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { nameOf, type ObjectModel } from '../environments/environments';
import { Confirm } from '../shell/Confirm';
import { useText } from '../text';
import { removeApplication } from './draft';

interface Props {
  environment: string;
  user: string;
  application: ObjectModel;
  isDisabled: boolean;
}

/** Takes an application out of the draft, once that is confirmed. Its losses are listed by the page, and asked for when the draft is deployed. */
export function RemoveApplication({ environment, user, application, isDisabled }: Props) {
  const words = useText().draft;
  const client = useQueryClient();
  const [asking, setAsking] = useState(false);
  const name = nameOf(application);
  return (
    <>
      <Button variant="plain" icon={<TrashIcon />} aria-label={words.removeOf(name)} onClick={() => setAsking(true)} isDisabled={isDisabled} />
      {asking && (
        <Confirm
          title={words.removeTitle(name)}
          what={words.removeWhat}
          action={words.remove}
          send={() => removeApplication(client, user, environment, application['?']?.id ?? '')}
          onDone={() => setAsking(false)}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  );
}
