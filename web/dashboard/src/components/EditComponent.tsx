import { Alert, Button, Content, Form, Modal, ModalBody, ModalFooter, ModalHeader, Skeleton } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useMemo, useState, type FormEvent } from 'react';

import { ArgumentFields } from '../actions/ArgumentFields';
import { ApiError } from '../api/client';
import { setProperties } from '../draft/draft';
import { previewQuery } from '../draft/plan';
import { Problems } from '../draft/Problems';
import { useDraft } from '../draft/useDraft';
import { nameOf, type ObjectModel } from '../environments/environments';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { changesOf, editableFields, propertiesQuery } from './editing';

interface Props {
  environment: string;
  object: ObjectModel;
  /** Where it is below the applications of the environment. */
  path: string[];
  onClose: () => void;
}

/** Edits the properties of an object in the draft, in a form made of its class's schema. */
export function EditComponent({ environment, object: latest, path, onClose }: Props) {
  const text = useText();
  const words = text.components;
  const id = useId();
  const client = useQueryClient();
  const { user, draft } = useDraft(environment);
  // The input is compared with the state at the opening or last saving of the dialog, and not with later changes of
  // others.
  const [object, setObject] = useState(latest);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [tried, setTried] = useState(false);
  const schema = useQuery(propertiesQuery(object['?']?.type ?? ''));
  const gone = schema.error instanceof ApiError && schema.error.status === 404;
  const fields = useMemo(
    () => (schema.data !== undefined || gone ? editableFields(schema.data ?? null, object, words) : null),
    [schema.data, gone, object, words],
  );
  const edited = changesOf(fields ?? [], typed, object, words.hidden);
  const hasChanges = Object.keys(edited.changes).length + Object.keys(edited.mistakes).length > 0;
  const save = useMutation({
    mutationFn: async () => {
      const session = await setProperties(client, user, environment, path, edited.changes);
      const { problems } = await client.fetchQuery({ ...previewQuery(environment, session), staleTime: 0 });
      return problems;
    },
    onSuccess: (problems) => {
      if (problems.length === 0) return onClose();
      setObject({ ...object, ...edited.changes });
      setTyped({});
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (Object.keys(edited.mistakes).length === 0) save.mutate();
  };
  return (
    <Modal isOpen variant="medium" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.editOf(nameOf(object))} labelId={`${id}-title`} description={words.editWhat} />
      <ModalBody>
        <Form id={id} onSubmit={submit} noValidate>
          {save.error && <Failure error={save.error} />}
          {save.data && save.data.length > 0 && (
            <Alert variant="danger" isInline isLiveRegion title={words.refused}>
              <Problems problems={save.data} />
            </Alert>
          )}
          {schema.error && !gone && <Failure error={schema.error} onRetry={() => void schema.refetch()} />}
          {schema.isPending && <Skeleton height="12rem" screenreaderText={text.shell.loading} />}
          {fields?.length === 0 && <Content component="p">{words.noProperties}</Content>}
          {fields && (
            <ArgumentFields
              environment={environment}
              session={draft?.state === 'opened' ? draft.session : undefined}
              fields={fields}
              typed={typed}
              mistakes={tried ? edited.mistakes : {}}
              onType={(name, value) => setTyped((now) => ({ ...now, [name]: value }))}
            />
          )}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!hasChanges || save.isPending} isLoading={save.isPending}>
          {words.saveInDraft}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
