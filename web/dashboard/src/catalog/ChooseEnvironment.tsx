import { Button, Form, FormGroup, FormSelect, FormSelectOption, Modal, ModalBody, ModalFooter, ModalHeader, Radio, TextInput } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import { recall } from '../draft/draft';
import { createEnvironment, environmentsQuery, isBusy } from '../environments/environments';
import { useRegion } from '../regions/regions';
import { Failure } from '../shell/Failure';
import { useSession } from '../session/session';
import { useText } from '../text';
import { suggested } from './about';

interface Props {
  application: string;
  onChosen: (environment: string) => void;
  onClose: () => void;
}

/** Asks where an application should go: an environment that is there, or a new one. */
export function ChooseEnvironment({ application, onChosen, onClose }: Props) {
  const text = useText();
  const words = text.details;
  const id = useId();
  const client = useQueryClient();
  const environments = useQuery(environmentsQuery);
  const { region } = useRegion();
  const list = environments.data ?? [];
  const [wantsNew, setWantsNew] = useState<boolean | null>(null);
  const [chosen, setChosen] = useState('');
  const [name, setName] = useState('');
  const isNew = wantsNew ?? list.length === 0;
  const user = useSession().user?.id ?? '';
  const environment = chosen || suggested(list.filter((one) => !isBusy(one)).map((one) => one.id ?? ''), (one) => recall(localStorage, user, one) !== '');
  const create = useMutation({
    mutationFn: (wanted: string) => createEnvironment(wanted, { region }),
    onSuccess: (made) => {
      void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
      onChosen(made.id ?? '');
    },
  });
  const isReady = isNew ? name.trim() !== '' : environment !== '';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isReady) return;
    if (isNew) create.mutate(name.trim());
    else onChosen(environment);
  };
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.choose} description={words.chooseWhat(application)} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {(create.error ?? environments.error) && <Failure error={(create.error ?? environments.error)!} />}
          <FormGroup role="radiogroup" isStack fieldId={`${id}-which`} label={words.environment}>
            <Radio
              id={`${id}-existing`}
              name={`${id}-which`}
              label={words.existing}
              isChecked={!isNew}
              isDisabled={list.length === 0}
              onChange={() => setWantsNew(false)}
              body={
                !isNew && (
                  <FormSelect aria-label={words.environment} value={environment} onChange={(_event, value) => setChosen(value)}>
                    <FormSelectOption value="" label={text.wizard.choose} isPlaceholder isDisabled />
                    {list.map((one) => (
                      <FormSelectOption key={one.id} value={one.id} label={one.name ?? ''} isDisabled={isBusy(one)} />
                    ))}
                  </FormSelect>
                )
              }
            />
            <Radio
              id={`${id}-new`}
              name={`${id}-which`}
              label={words.newOne}
              isChecked={isNew}
              onChange={() => setWantsNew(true)}
              body={
                isNew && (
                  <TextInput aria-label={words.newName} placeholder={words.newName} value={name} onChange={(_event, value) => setName(value)} maxLength={255} />
                )
              }
            />
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!isReady || create.isPending} isLoading={create.isPending}>
          {words.next}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
