import { Button, Content, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useId, type ReactNode } from 'react';

import { useText } from '../text';
import { Failure } from './Failure';

interface Props {
  title: string;
  /** What is lost. */
  what: ReactNode;
  action: string;
  send: () => Promise<unknown>;
  onDone: () => void;
  onClose: () => void;
}

/** Asks before something is destroyed. */
export function Confirm({ title, what, action, send, onDone, onClose }: Props) {
  const text = useText();
  const id = useId();
  const attempt = useMutation({ mutationFn: send, onSuccess: onDone });
  return (
    <Modal isOpen variant="small" aria-labelledby={id} onClose={onClose}>
      <ModalHeader title={title} labelId={id} titleIconVariant="warning" />
      <ModalBody>
        {attempt.error && <Failure error={attempt.error} />}
        {typeof what === 'string' ? <Content component="p">{what}</Content> : what}
      </ModalBody>
      <ModalFooter>
        <Button variant="danger" onClick={() => attempt.mutate()} isLoading={attempt.isPending} isDisabled={attempt.isPending}>
          {action}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
