import { Button, Content, Form, FormGroup, Modal, ModalBody, ModalFooter, ModalHeader, TextInput } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { takeSnapshot } from './snapshots';

interface Props {
  environment: string;
  cluster: string;
  onDone: () => void;
  onClose: () => void;
}

/** Takes a snapshot of a cluster, with its purpose. */
export function TakeDialog({ environment, cluster, onDone, onClose }: Props) {
  const text = useText();
  const words = text.snapshots;
  const id = useId();
  const [reason, setReason] = useState('');
  const attempt = useMutation({ mutationFn: () => takeSnapshot(environment, cluster, reason.trim()), onSuccess: onDone });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    attempt.mutate();
  };
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.take} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {attempt.error && <Failure error={attempt.error} />}
          <Content component="p">{words.takeWhat}</Content>
          <FormGroup label={words.reason} fieldId={`${id}-reason`}>
            <TextInput id={`${id}-reason`} value={reason} onChange={(_event, value) => setReason(value)} maxLength={255} />
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={attempt.isPending} isLoading={attempt.isPending}>
          {words.take}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
