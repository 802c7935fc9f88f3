import { Button, Content, Modal, ModalBody, ModalFooter, ModalHeader, Radio } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useId, useState } from 'react';

import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { goBack, type Secrets } from './past';

interface Props {
  environment: string;
  user: string;
  state: number;
  onClose: () => void;
}

/** Makes a former state the draft, whose preview is shown then. */
export function GoBack({ environment, user, state, onClose }: Props) {
  const text = useText();
  const words = text.past;
  const id = useId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [secrets, setSecrets] = useState<Secrets>('now');
  const attempt = useMutation({
    mutationFn: () => goBack(client, user, environment, state, secrets),
    onSuccess: () => {
      onClose();
      void navigate({ to: '.', search: { tab: 'components' } });
    },
  });
  return (
    <Modal isOpen variant="small" aria-labelledby={id} onClose={onClose}>
      <ModalHeader title={words.backTitle(state)} labelId={id} />
      <ModalBody>
        {attempt.error && <Failure error={attempt.error} />}
        <Content component="p">{words.backWhat}</Content>
        {(['now', 'then'] as const).map((one) => (
          <Radio key={one} id={`${id}-${one}`} name={id} label={words.secrets[one]} isChecked={secrets === one} onChange={() => setSecrets(one)} />
        ))}
      </ModalBody>
      <ModalFooter>
        <Button onClick={() => attempt.mutate()} isLoading={attempt.isPending} isDisabled={attempt.isPending}>
          {words.backAction}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
