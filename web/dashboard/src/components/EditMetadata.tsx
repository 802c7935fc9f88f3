import { Button, Form, FormGroup, FormHelperText, HelperText, HelperTextItem, Modal, ModalBody, ModalFooter, ModalHeader, TextArea } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import { setMetadata } from '../draft/draft';
import { useDraft } from '../draft/useDraft';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { metadataOf } from './keptData';

interface Props {
  environment: string;
  object: string;
  name: string;
  metadata: Record<string, unknown>;
  onClose: () => void;
}

/** Edits the metadata of a component in the draft, as JSON. */
export function EditMetadata({ environment, object, name, metadata, onClose }: Props) {
  const text = useText();
  const words = text.components;
  const id = useId();
  const client = useQueryClient();
  const { user } = useDraft(environment);
  const [typed, setTyped] = useState(() => JSON.stringify(metadata, null, 2));
  const wanted = metadataOf(typed);
  const save = useMutation({
    mutationFn: async () => {
      if (wanted) await setMetadata(client, user, environment, object, wanted);
    },
    onSuccess: onClose,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (wanted) save.mutate();
  };
  return (
    <Modal isOpen variant="medium" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.metadataOf(name)} labelId={`${id}-title`} description={words.editMetadataWhat} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {save.error && <Failure error={save.error} />}
          <FormGroup label={words.metadata} fieldId={`${id}-json`} isRequired>
            <TextArea
              id={`${id}-json`}
              value={typed}
              onChange={(_event, value) => setTyped(value)}
              rows={12}
              className="burano-mono"
              spellCheck={false}
              validated={wanted ? 'default' : 'error'}
              aria-describedby={`${id}-help`}
              autoFocus
            />
            <FormHelperText>
              <HelperText id={`${id}-help`} isLiveRegion>
                <HelperTextItem variant={wanted ? 'default' : 'error'}>{words.metadataForm}</HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!wanted || save.isPending} isLoading={save.isPending}>
          {text.shell.save}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
