import { Button, Checkbox, Form, FormGroup, FormSelect, FormSelectOption, Modal, ModalBody, ModalFooter, ModalHeader, TextArea, TextInput } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useId, useState, type FormEvent } from 'react';

import { environmentsQuery } from '../environments/environments';
import { NameDialog } from '../environments/NameDialog';
import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { cloneTemplate, createFromTemplate, createTemplate, deleteTemplate, renameTemplate, templatesKey, type NewTemplate, type Template } from './templates';

export type TemplateDialog = { kind: 'create' } | { kind: 'rename' | 'clone' | 'delete' | 'environment'; of: Template };

interface Props {
  dialog: TemplateDialog;
  onClose: () => void;
}

/** The commands for templates, each with its dialog. */
export function TemplateDialogs({ dialog, onClose }: Props) {
  const text = useText();
  const words = text.templates;
  const navigate = useNavigate();
  const client = useQueryClient();
  const renew = () => {
    onClose();
    void client.invalidateQueries({ queryKey: templatesKey });
  };
  const show = (made: Template) => {
    renew();
    void navigate({ to: '/templates/$template', params: { template: made.id ?? '' } });
  };
  if (dialog.kind === 'create') return <CreateDialog onDone={show} onClose={onClose} />;
  const { id = '', name = '' } = dialog.of;
  switch (dialog.kind) {
    case 'rename':
      return <NameDialog title={words.rename} action={text.shell.save} initial={name} send={(next) => renameTemplate(id, next)} onDone={renew} onClose={onClose} />;
    case 'clone':
      return <NameDialog title={words.clone} action={words.clone} initial={name} send={(next) => cloneTemplate(id, next)} onDone={show} onClose={onClose} />;
    case 'environment':
      return (
        <NameDialog
          title={words.toEnvironment}
          action={words.toEnvironment}
          initial={name}
          send={(next) => createFromTemplate(id, next)}
          onDone={(made) => {
            void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
            void navigate({ to: '/environments/$environment', params: { environment: made.environment_id ?? '' } });
          }}
          onClose={onClose}
        />
      );
    case 'delete':
      return (
        <Confirm
          title={words.deleteTitle(name)}
          what={words.deleteWhat}
          action={words.delete}
          send={() => deleteTemplate(id)}
          // The data of the next page are renewed: the template itself is gone.
          onDone={() => void navigate({ to: '/templates' }).then(renew)}
          onClose={onClose}
        />
      );
  }
}

function CreateDialog({ onDone, onClose }: { onDone: (made: Template) => void; onClose: () => void }) {
  const text = useText();
  const words = text.templates;
  const id = useId();
  const environments = useQuery(environmentsQuery);
  const [value, setValue] = useState<NewTemplate>({ name: '', is_public: false, description_text: '', environment: '' });
  const attempt = useMutation({ mutationFn: () => createTemplate({ ...value, name: value.name.trim() }), onSuccess: onDone });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (value.name.trim()) attempt.mutate();
  };
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.create} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {attempt.error && <Failure error={attempt.error} />}
          <FormGroup label={words.name} fieldId={`${id}-name`} isRequired>
            <TextInput id={`${id}-name`} value={value.name} onChange={(_event, name) => setValue({ ...value, name })} maxLength={255} isRequired autoFocus />
          </FormGroup>
          <FormGroup label={words.from} fieldId={`${id}-from`}>
            <FormSelect id={`${id}-from`} value={value.environment} onChange={(_event, environment) => setValue({ ...value, environment })}>
              <FormSelectOption value="" label={words.fromNothing} />
              {(environments.data ?? []).map((one) => (
                <FormSelectOption key={one.id} value={one.id} label={one.name ?? ''} />
              ))}
            </FormSelect>
          </FormGroup>
          <FormGroup label={words.description} fieldId={`${id}-description`}>
            <TextArea id={`${id}-description`} value={value.description_text} onChange={(_event, description_text) => setValue({ ...value, description_text })} />
          </FormGroup>
          <Checkbox id={`${id}-public`} label={words.publicWhat} isChecked={value.is_public} onChange={(_event, is_public) => setValue({ ...value, is_public })} />
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!value.name.trim() || attempt.isPending} isLoading={attempt.isPending}>
          {words.create}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
