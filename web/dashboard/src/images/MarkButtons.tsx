import { Button, Flex, FlexItem, Form, FormGroup, Modal, ModalBody, ModalFooter, ModalHeader, TextInput } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import type { Schema } from '../api/client';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { imageTypes, markImage, unmarkImage } from './images';

type Image = Pick<Schema<'ImageMark'>, 'title'> & { id?: string; name?: string; type?: string };

/** Marks an image, or takes its mark away. */
export function MarkButtons({ image }: { image: Image }) {
  const words = useText().images;
  const client = useQueryClient();
  const [marking, setMarking] = useState(false);
  const fresh = () => client.invalidateQueries({ queryKey: ['cloud', 'images'] });
  const drop = useMutation({ mutationFn: () => unmarkImage(image.id ?? ''), onSuccess: fresh });
  return (
    <>
      <Flex columnGap={{ default: 'columnGapSm' }}>
        <FlexItem>
          <Button variant="link" isInline aria-label={(image.type ? words.remarkOf : words.markOf)(image.name ?? '')} onClick={() => setMarking(true)}>
            {image.type ? words.remarkIt : words.markIt}
          </Button>
        </FlexItem>
        {image.type && (
          <FlexItem>
            <Button variant="link" isInline isDanger aria-label={words.unmarkOf(image.name ?? '')} onClick={() => drop.mutate()} isDisabled={drop.isPending}>
              {words.unmarkIt}
            </Button>
          </FlexItem>
        )}
      </Flex>
      {drop.error && <Failure error={drop.error} />}
      {marking && (
        <MarkDialog
          image={image}
          onDone={() => {
            setMarking(false);
            void fresh();
          }}
          onClose={() => setMarking(false)}
        />
      )}
    </>
  );
}

function MarkDialog({ image, onDone, onClose }: { image: Image; onDone: () => void; onClose: () => void }) {
  const text = useText();
  const words = text.images;
  const id = useId();
  const [type, setType] = useState(image.type || imageTypes[0]);
  const [title, setTitle] = useState(image.title || (image.name ?? ''));
  const mark = useMutation({ mutationFn: () => markImage(image.id ?? '', type.trim(), title.trim()), onSuccess: onDone });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (type.trim()) mark.mutate();
  };
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={(image.type ? words.remarkOf : words.markOf)(image.name ?? '')} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {mark.error && <Failure error={mark.error} />}
          <FormGroup label={words.type} fieldId={`${id}-type`} isRequired>
            <TextInput id={`${id}-type`} list={`${id}-types`} value={type} onChange={(_event, value) => setType(value)} isRequired />
            <datalist id={`${id}-types`}>
              {imageTypes.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          </FormGroup>
          <FormGroup label={words.titleOf} fieldId={`${id}-name`}>
            <TextInput id={`${id}-name`} value={title} onChange={(_event, value) => setTitle(value)} />
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={!type.trim() || mark.isPending} isLoading={mark.isPending}>
          {words.markIt}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
