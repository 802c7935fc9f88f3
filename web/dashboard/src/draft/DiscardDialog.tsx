import { Content } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';

import { Confirm } from '../shell/Confirm';
import { useText } from '../text';
import { Changes } from './Changes';
import { previewQuery } from './plan';

interface Props {
  environment: string;
  session: string;
  send: () => Promise<unknown>;
  onClose: () => void;
}

/** Asks before a draft is discarded, and lists its changes. */
export function DiscardDialog({ environment, session, send, onClose }: Props) {
  const words = useText().draft;
  const changes = useQuery(previewQuery(environment, session)).data?.changes ?? [];
  return (
    <Confirm
      title={words.discardTitle}
      what={
        <>
          <Content component="p">{words.discardWhat}</Content>
          {changes.length > 0 && <Changes environment={environment} changes={changes} isOpen />}
        </>
      }
      action={words.discard}
      send={send}
      onDone={onClose}
      onClose={onClose}
    />
  );
}
