import { Alert, Button, Content, ExpandableSection, Form, Modal, ModalBody, ModalFooter, ModalHeader, Skeleton } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useId, useMemo, useState } from 'react';

import { ArgumentFields } from '../actions/ArgumentFields';
import { ApiError } from '../api/client';
import { inDraft, setProperties } from '../draft/draft';
import { previewQuery } from '../draft/plan';
import { Problems } from '../draft/Problems';
import { useDraft } from '../draft/useDraft';
import { nameOf, type ObjectModel } from '../environments/environments';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { changesOf, editableFields, propertiesQuery, withPartsOf } from './editing';
import { effectOf, inWords, putForm, todayQuery } from './form';
import { FormFields, type Answered } from './FormFields';

interface Props {
  environment: string;
  object: ObjectModel;
  /** Where it is below the applications of the environment. */
  path: string[];
  /** The object that contains it. */
  owner?: ObjectModel;
  onClose: () => void;
}

/** Edits an object in the draft: an application by the form that it was made with, everything else in a form made of its class's schema. */
export function EditComponent({ environment, object: latest, path, owner, onClose }: Props) {
  const text = useText();
  const words = text.components;
  const id = useId();
  const client = useQueryClient();
  const { user, draft } = useDraft(environment);
  // The input is compared with the state at the opening or last saving of the dialog, and not with later changes of
  // others.
  const [object, setObject] = useState(latest);
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [answered, setAnswered] = useState<Answered | null>(null);
  const [tried, setTried] = useState(false);
  const [open, setOpen] = useState(false);
  const component = path.length === 1 ? (object['?']?.id ?? '') : '';
  const asked = useQuery({ ...todayQuery(environment, component, draft), enabled: component !== '', staleTime: Infinity, gcTime: 0 });
  const [round, setRound] = useState(0);
  const [shown, setShown] = useState(asked.data);
  if (shown === undefined && asked.data !== undefined) setShown(asked.data);
  const today = component === '' ? null : shown;
  const schema = useQuery(propertiesQuery(object['?']?.type ?? ''));
  const above = useQuery({ ...propertiesQuery(owner?.['?']?.type ?? ''), enabled: owner?.['?']?.type !== undefined });
  const gone = schema.error instanceof ApiError && schema.error.status === 404;
  const fields = useMemo(
    () => (schema.data !== undefined || gone ? withPartsOf(above.data ?? null, path.at(-1) ?? '', editableFields(schema.data ?? null, object, words)) : null),
    [schema.data, above.data, path, gone, object, words],
  );
  const others = useMemo(() => (today ? (fields ?? []).filter((field) => !today.covered.includes(field.name)) : (fields ?? [])), [fields, today]);
  const edited = changesOf(others, typed, object, words.hidden);
  const isTyped = Object.keys(edited.changes).length + Object.keys(edited.mistakes).length > 0;
  const isWrong = Object.keys(edited.mistakes).length > 0;
  const save = useMutation({
    mutationFn: async () => {
      const byForm = answered?.hasChanges ? answered.filled : null;
      if (byForm && (await effectOf(environment, component, draft, byForm)).errors.length > 0) return null;
      let session = '';
      const effect = byForm && (await inDraft(client, user, environment, (one) => ((session = one), putForm(environment, component, one, byForm))));
      if (Object.keys(edited.changes).length > 0) session = await setProperties(client, user, environment, path, edited.changes);
      const { problems } = await client.fetchQuery({ ...previewQuery(environment, session), staleTime: 0 });
      return { problems, conflicts: effect?.conflicts ?? [], session };
    },
    onSuccess: async (result) => {
      if (!result) return;
      if (result.problems.length + result.conflicts.length === 0) return onClose();
      const again = component === '' ? null : await client.fetchQuery({ ...todayQuery(environment, component, { session: result.session, state: 'opened', rejected: false }), staleTime: 0 });
      setObject({ ...object, ...edited.changes });
      setTyped({});
      setShown(again);
      setRound(round + 1);
    },
  });
  const submit = () => {
    setTried(true);
    if (isWrong) setOpen(true);
    if (!isWrong && (answered?.mistakes ?? []).length === 0 && (isTyped || answered?.hasChanges)) save.mutate();
  };
  const onAnswer = useCallback((one: Answered) => setAnswered(one), []);
  const isPending = schema.isPending || (component !== '' && today === undefined && !asked.error);
  const advanced = (
    <Form
      id={id}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {fields && (
        <ArgumentFields
          environment={environment}
          session={draft?.state === 'opened' ? draft.session : undefined}
          fields={others}
          typed={typed}
          mistakes={tried ? edited.mistakes : {}}
          onType={(name, value) => setTyped((now) => ({ ...now, [name]: value }))}
        />
      )}
    </Form>
  );
  // A form may open a dialog over this one, which hears of the key, too.
  const escape = () => {
    if ([...document.querySelectorAll('[role="dialog"]')].at(-1)?.id === `${id}-dialog`) onClose();
  };
  return (
    <Modal isOpen id={`${id}-dialog`} variant={today ? 'large' : 'medium'} aria-labelledby={`${id}-title`} onClose={onClose} onEscapePress={escape}>
      <ModalHeader title={words.editOf(nameOf(object))} labelId={`${id}-title`} description={words.editWhat} />
      <ModalBody>
        {save.error && <Failure error={save.error} />}
        {save.data && save.data.problems.length > 0 && (
          <Alert variant="danger" isInline isLiveRegion title={words.refused}>
            <Problems environment={environment} session={save.data.session} problems={save.data.problems} />
          </Alert>
        )}
        {save.data && save.data.conflicts.length > 0 && (
          <Alert variant="warning" isInline isLiveRegion title={words.conflicts}>
            {words.conflictsWhat}
            <Content component="ul">
              {save.data.conflicts.map((one) => (
                <Content component="li" key={one.path} className="burano-breaks">
                  {words.conflict(one.path, inWords(one.present, words.empty), inWords(one.wanted, words.empty))}
                </Content>
              ))}
            </Content>
          </Alert>
        )}
        {asked.error && <Failure error={asked.error} onRetry={() => void asked.refetch()} />}
        {schema.error && !gone && <Failure error={schema.error} onRetry={() => void schema.refetch()} />}
        {isPending && <Skeleton height="12rem" screenreaderText={text.shell.loading} />}
        {!isPending && today && (
          <FormFields key={round} environment={environment} component={component} today={today} tried={tried} onChange={onAnswer} onSubmit={submit} />
        )}
        {!isPending && today && others.length > 0 && (
          <ExpandableSection toggleText={words.advanced} isExpanded={open} onToggle={(_event, next) => setOpen(next)} isIndented>
            {open && (
              <>
                <Content component="p">{words.advancedWhat}</Content>
                {advanced}
              </>
            )}
          </ExpandableSection>
        )}
        {!isPending && !today && fields?.length === 0 && <Content component="p">{words.noProperties}</Content>}
        {!isPending && !today && advanced}
      </ModalBody>
      <ModalFooter>
        <Button onClick={submit} isDisabled={!(isTyped || answered?.hasChanges) || save.isPending} isLoading={save.isPending}>
          {words.saveInDraft}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
