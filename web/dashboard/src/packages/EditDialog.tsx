import { Button, Form, FormGroup, Modal, ModalBody, ModalFooter, ModalHeader, TextArea, TextInput } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import type { Package } from '../catalog/catalog';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { MetadataFields, type Typed } from './MetadataFields';
import { changePackage, listOf } from './packages';

/** Changes a package's description in the catalog. */
export function EditDialog({ of, onDone, onClose }: { of: Package; onDone: () => void; onClose: () => void }) {
  const text = useText();
  const words = text.packages;
  const id = useId();
  const [name, setName] = useState(of.name ?? '');
  const [description, setDescription] = useState(of.description ?? '');
  const [rest, setRest] = useState<Typed>({
    categories: of.categories ?? [],
    tags: (of.tags ?? []).join(', '),
    is_public: of.is_public ?? false,
    enabled: of.enabled ?? true,
  });
  const attempt = useMutation({
    mutationFn: () => changePackage(of, { name: name.trim(), description, ...rest, tags: listOf(rest.tags) }),
    onSuccess: onDone,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    attempt.mutate();
  };
  return (
    <Modal isOpen variant="medium" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.editTitle(of.name ?? '')} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {attempt.error && <Failure error={attempt.error} />}
          <FormGroup label={words.name} fieldId={`${id}-name`} isRequired>
            <TextInput id={`${id}-name`} value={name} onChange={(_event, value) => setName(value)} maxLength={80} isRequired />
          </FormGroup>
          <FormGroup label={words.description} fieldId={`${id}-description`}>
            <TextArea id={`${id}-description`} value={description} onChange={(_event, value) => setDescription(value)} rows={4} resizeOrientation="vertical" />
          </FormGroup>
          <MetadataFields value={rest} onChange={setRest} />
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!name.trim() || attempt.isPending} isLoading={attempt.isPending}>
          {text.shell.save}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
