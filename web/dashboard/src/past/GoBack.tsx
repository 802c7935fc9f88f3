import { Button, Content, Modal, ModalBody, ModalFooter, ModalHeader, Radio } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useId, useState } from 'react';

import { Means } from '../draft/Means';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { goBack, type Secrets } from './past';

interface Props {
  environment: string;
  user: string;
  state: number;
  onClose: () => void;
}

/** Makes a former state the draft, whose plan is shown then. */
export function GoBack({ environment, user, state, onClose }: Props) {
  const text = useText();
  const words = text.past;
  const id = useId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [secrets, setSecrets] = useState<Secrets>('now');
  const toDraft = () => {
    onClose();
    void navigate({ to: '.', search: { tab: 'components' } });
  };
  const attempt = useMutation({
    mutationFn: () => goBack(client, user, environment, state, secrets),
    onSuccess: (notes) => {
      if (notes.length === 0) toDraft();
    },
  });
  if (attempt.data?.length) {
    return (
      <Modal isOpen variant="small" aria-labelledby={id} onClose={toDraft}>
        <ModalHeader title={words.backTo(state)} labelId={id} />
        <ModalBody>
          <Content component="p">{words.backDone}</Content>
          <Means means={attempt.data} />
        </ModalBody>
        <ModalFooter>
          <Button onClick={toDraft}>{words.toDraft}</Button>
        </ModalFooter>
      </Modal>
    );
  }
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
