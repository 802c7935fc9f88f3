import { Button, Content, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useId, type ReactNode } from 'react';

import { useText } from '../text';
import { Failure } from './Failure';

interface Props<T> {
  title: string;
  /** The consequences. */
  what: ReactNode;
  action: string;
  /** It destroys nothing. */
  harmless?: boolean;
  /** The action waits for what the consequences ask. */
  isReady?: boolean;
  /** Shows a refusal in another way. */
  explain?: (refusal: Error) => ReactNode;
  send: () => Promise<T>;
  onDone: (answer: T) => void;
  onClose: () => void;
}

/** Asks before something is destroyed or granted. */
export function Confirm<T>({ title, what, action, harmless, isReady = true, explain, send, onDone, onClose }: Props<T>) {
  const text = useText();
  const id = useId();
  const attempt = useMutation({ mutationFn: send, onSuccess: onDone });
  return (
    <Modal isOpen variant="small" aria-labelledby={id} onClose={onClose}>
      <ModalHeader title={title} labelId={id} titleIconVariant={harmless ? undefined : 'warning'} />
      <ModalBody>
        {attempt.error && (explain ? explain(attempt.error) : <Failure error={attempt.error} />)}
        {typeof what === 'string' ? <Content component="p">{what}</Content> : what}
      </ModalBody>
      <ModalFooter>
        <Button
          variant={harmless ? 'primary' : 'danger'}
          onClick={() => attempt.mutate()}
          isLoading={attempt.isPending}
          isDisabled={attempt.isPending || !isReady}
        >
          {action}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
