import { Button, Checkbox, Content, Form, FormGroup, FormSelect, FormSelectOption, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import { useSession } from '../session/session';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { giveDelegation } from './delegation';

/** For how many days a delegation may be given; 0 is without an end. */
const terms = [30, 90, 365, 0];

/** Makes the delegation the caller's. */
export function GiveDialog({ environment, onDone, onClose }: { environment: string; onDone: () => void; onClose: () => void }) {
  const text = useText();
  const words = text.delegation;
  const id = useId();
  const own = useSession().roles ?? [];
  const [roles, setRoles] = useState(own);
  const [days, setDays] = useState(365);
  const attempt = useMutation({ mutationFn: () => giveDelegation(environment, roles, days), onSuccess: onDone });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    attempt.mutate();
  };
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.giveTitle} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {attempt.error && <Failure error={attempt.error} />}
          <Content component="p">{words.giveWhat}</Content>
          <FormGroup role="group" label={words.roles} fieldId={`${id}-roles`}>
            {own.map((role) => (
              <Checkbox
                key={role}
                id={`${id}-${role}`}
                label={role}
                isChecked={roles.includes(role)}
                onChange={(_event, checked) => setRoles((now) => (checked ? [...now, role] : now.filter((each) => each !== role)))}
              />
            ))}
          </FormGroup>
          <FormGroup label={words.term} fieldId={`${id}-term`}>
            <FormSelect id={`${id}-term`} value={String(days)} onChange={(_event, value) => setDays(Number(value))}>
              {terms.map((term) => (
                <FormSelectOption key={term} value={String(term)} label={term ? words.days(term) : words.forever} />
              ))}
            </FormSelect>
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={roles.length === 0 || attempt.isPending} isLoading={attempt.isPending}>
          {words.give}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
