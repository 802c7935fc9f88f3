import { Button, Form, FormGroup, Modal, ModalBody, ModalFooter, ModalHeader, TextInput } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useId, useState, type FormEvent, type ReactNode } from 'react';

import { Failure } from '../shell/Failure';
import { useText } from '../text';

interface Props<T> {
  title: string;
  action: string;
  initial?: string;
  /** The dialog's operation; its refusal is shown in the dialog. */
  send: (name: string) => Promise<T>;
  onDone: (result: T) => void;
  onClose: () => void;
  /** Whether one of the further fields has an invalid value. */
  isRefused?: boolean;
  /** Further fields. */
  children?: ReactNode;
}

/** Asks for a name of at most 255 characters. */
export function NameDialog<T>({ title, action, initial = '', send, onDone, onClose, isRefused = false, children }: Props<T>) {
  const text = useText();
  const id = useId();
  const [name, setName] = useState(initial);
  const attempt = useMutation({ mutationFn: send, onSuccess: onDone });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() && !isRefused) attempt.mutate(name.trim());
  };
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={title} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {attempt.error && <Failure error={attempt.error} />}
          <FormGroup label={text.environments.name} fieldId={`${id}-name`} isRequired>
            <TextInput id={`${id}-name`} value={name} onChange={(_event, value) => setName(value)} maxLength={255} isRequired autoFocus />
          </FormGroup>
          {children}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!name.trim() || isRefused || attempt.isPending} isLoading={attempt.isPending}>
          {action}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
