import { Button, Content, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useId, type ReactNode } from 'react';

import { useText } from '../text';
import { Failure } from './Failure';

interface Props {
  title: string;
  /** The consequences. */
  what: ReactNode;
  action: string;
  /** It destroys nothing. */
  harmless?: boolean;
  send: () => Promise<unknown>;
  onDone: () => void;
  onClose: () => void;
}

/** Asks before something is destroyed or granted. */
export function Confirm({ title, what, action, harmless, send, onDone, onClose }: Props) {
  const text = useText();
  const id = useId();
  const attempt = useMutation({ mutationFn: send, onSuccess: onDone });
  return (
    <Modal isOpen variant="small" aria-labelledby={id} onClose={onClose}>
      <ModalHeader title={title} labelId={id} titleIconVariant={harmless ? undefined : 'warning'} />
      <ModalBody>
        {attempt.error && <Failure error={attempt.error} />}
        {typeof what === 'string' ? <Content component="p">{what}</Content> : what}
      </ModalBody>
      <ModalFooter>
        <Button variant={harmless ? 'primary' : 'danger'} onClick={() => attempt.mutate()} isLoading={attempt.isPending} isDisabled={attempt.isPending}>
          {action}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
