import { Alert, Button, Content, Form, Modal, ModalBody, ModalFooter, ModalHeader, Skeleton } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import { nameOf, type ObjectModel } from '../environments/environments';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { ActionRun } from './ActionRun';
import { callAction, classActionsQuery, mayDestroy, type Action } from './actions';
import { ArgumentFields } from './ArgumentFields';
import { ArgumentPairs } from './ArgumentPairs';
import { argumentsOf, argumentsOfPairs, fieldsOf, type Pair } from './schema';

interface Props {
  environment: string;
  object: ObjectModel;
  action: Action;
  /** Arguments that are known already, as they would be typed. */
  given?: Record<string, string>;
  onClose: () => void;
}

/** Asks for an action's arguments, runs it, and shows its result. */
export function ActionDialog({ environment, object, action, given = {}, onClose }: Props) {
  const text = useText();
  const words = text.actions;
  const id = useId();
  const client = useQueryClient();
  const asked = useQuery(classActionsQuery(object['?']?.type ?? ''));
  const described = asked.data?.find((each) => each.name === action.method);
  const [typed, setTyped] = useState(given);
  const [pairs, setPairs] = useState<Pair[]>([]);
  const [tried, setTried] = useState(false);
  const call = useMutation({
    mutationFn: (args: Record<string, unknown>) => callAction(environment, action.id, args),
    onSuccess: () => client.invalidateQueries({ queryKey: ['environments'] }),
  });
  const fields = described ? fieldsOf(described.arguments) : null;
  const warning = described?.confirm || (mayDestroy(action) ? words.destroys : '');
  const filled = fields ? argumentsOf(fields, typed) : { args: argumentsOfPairs(pairs), mistakes: {} };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (Object.keys(filled.mistakes).length === 0) call.mutate(filled.args);
  };
  return (
    <Modal isOpen variant="medium" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.runTitle(action.title, nameOf(object))} description={described?.description || action.description} labelId={`${id}-title`} />
      <ModalBody>
        {call.data ? (
          <ActionRun environment={environment} task={call.data} />
        ) : (
          <Form id={id} onSubmit={submit} noValidate>
            {call.error && <Failure error={call.error} />}
            {action.deprecated && <Alert variant="info" isInline isPlain title={words.deprecated(action.deprecated)} />}
            {warning && <Alert variant="warning" isInline isPlain title={warning} />}
            {described?.help && <Content component="p">{described.help}</Content>}
            {asked.isPending && <Skeleton height="4rem" screenreaderText={text.shell.loading} />}
            {fields?.length === 0 && <Content component="p">{words.noArguments}</Content>}
            {fields && (
              <ArgumentFields
                environment={environment}
                fields={fields}
                typed={typed}
                mistakes={tried ? filled.mistakes : {}}
                onType={(name, value) => setTyped((now) => ({ ...now, [name]: value }))}
              />
            )}
            {!fields && !asked.isPending && <ArgumentPairs pairs={pairs} onChange={setPairs} />}
          </Form>
        )}
      </ModalBody>
      <ModalFooter>
        {!call.data && (
          <Button
            type="submit"
            form={id}
            variant={warning ? 'danger' : 'primary'}
            isDisabled={asked.isPending || call.isPending}
            isLoading={call.isPending}
          >
            {words.run}
          </Button>
        )}
        <Button variant={call.data ? 'primary' : 'link'} onClick={onClose}>
          {call.data ? text.shell.close : text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
