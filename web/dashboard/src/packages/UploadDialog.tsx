import { Alert, Button, Content, Form, List, ListItem, Modal, ModalBody, ModalFooter, ModalHeader, MultipleFileUpload, MultipleFileUploadMain } from '@patternfly/react-core';
import { UploadIcon } from '@patternfly/react-icons';
import { useMutation } from '@tanstack/react-query';
import { useId, useState } from 'react';

import { ApiError } from '../api/client';
import type { Package } from '../catalog/catalog';
import { HelpLink } from '../help/HelpLink';
import { useText } from '../text';
import { inOrder, isBundle, missing, mostBytes, readBundle, type Bundle } from './bundle';
import { MetadataFields, type Typed } from './MetadataFields';
import { findings, listOf, uploadPackage } from './packages';

interface Chosen {
  file: File;
  state: 'waiting' | 'sent' | 'refused';
  error?: Error;
}

/** Takes one or several packages, shows the server's reasons for refused ones, and offers these for another try. */
export function UploadDialog({ onUploaded, onClose }: { onUploaded: (made: Package[]) => void; onClose: () => void }) {
  const text = useText();
  const words = text.packages;
  const id = useId();
  const [list, setList] = useState<Chosen[]>([]);
  const [rest, setRest] = useState<Typed>({ categories: [], tags: '', is_public: false, enabled: true });
  const waiting = list.filter((one) => one.state !== 'sent');
  const [bundle, setBundle] = useState<Bundle | null>(null);
  const [noBundle, setNoBundle] = useState('');
  const readFrom = async (file: File) => {
    const read = file.size <= mostBytes ? readBundle(file.name, await file.text()) : null;
    setBundle(read);
    setNoBundle(read ? '' : file.name);
  };
  const add = (dropped: File[]) => {
    const named = dropped.find((file) => isBundle(file.name));
    if (named) void readFrom(named);
    const files = dropped.filter((file) => !isBundle(file.name));
    setList((before) => [
      ...before.filter((one) => !files.some((file) => file.name === one.file.name)),
      ...files.map((file) => ({ file, state: 'waiting' as const })),
    ]);
  };
  const attempt = useMutation({
    mutationFn: async () => {
      const made: Package[] = [];
      let refused = 0;
      for (const { file } of inOrder(bundle, waiting, (one) => one.file.name)) {
        const error = await uploadPackage(file, { ...rest, tags: listOf(rest.tags) }).then(
          (one) => void made.push(one),
          (reason: Error) => reason,
        );
        if (error) refused++;
        setList((before) => before.map((one) => (one.file === file ? { file, state: error ? 'refused' : 'sent', error } : one)));
      }
      return { made, refused };
    },
    onSuccess: ({ made, refused }) => {
      onUploaded(made);
      if (refused === 0) onClose();
    },
  });
  return (
    <Modal isOpen variant="medium" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.upload} labelId={`${id}-title`} description={words.uploadWhat} help={<HelpLink page="authors" />} />
      <ModalBody>
        <Form
          id={id}
          onSubmit={(event) => {
            event.preventDefault();
            if (waiting.length > 0) attempt.mutate();
          }}
        >
          <MultipleFileUpload onFileDrop={(_event, files) => add(files)} dropzoneProps={{ accept: { 'application/zip': ['.zip'], 'application/json': ['.bundle', '.json'] }, disabled: attempt.isPending }}>
            <MultipleFileUploadMain
              titleIcon={<UploadIcon />}
              titleText={words.drop}
              titleTextSeparator={words.or}
              infoText={words.uploadLimits}
              browseButtonText={words.browse}
            />
          </MultipleFileUpload>
          {noBundle && <Alert isInline isPlain variant="danger" title={words.noBundle(noBundle)} />}
          {bundle && <OfBundle bundle={bundle} files={list.map((one) => one.file.name)} />}
          {inOrder(bundle, list, (one) => one.file.name).map((one) => (
            <File key={one.file.name} one={one} onRemove={() => setList((before) => before.filter((other) => other !== one))} />
          ))}
          <MetadataFields value={rest} onChange={setRest} />
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={waiting.length === 0 || attempt.isPending} isLoading={attempt.isPending}>
          {words.uploadSome(waiting.length)}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.close}
        </Button>
      </ModalFooter>
    </Modal>
  );
}

/** The packages of a bundle, and the missing files. */
function OfBundle({ bundle, files }: { bundle: Bundle; files: string[] }) {
  const words = useText().packages;
  const absent = missing(bundle, files);
  return (
    <Alert isInline variant={absent.length > 0 ? 'warning' : 'info'} title={words.bundle(bundle.file, bundle.packages.length)}>
      {absent.length > 0 && (
        <>
          <Content component="p">{words.absent}</Content>
          <List className="burano-breaks">
            {absent.map((name) => (
              <ListItem key={name}>{`${name}.zip`}</ListItem>
            ))}
          </List>
        </>
      )}
    </Alert>
  );
}

function File({ one, onRemove }: { one: Chosen; onRemove: () => void }) {
  const text = useText();
  const words = text.packages;
  const variant = { waiting: 'info', sent: 'success', refused: 'danger' } as const;
  return (
    <Alert
      isInline
      isPlain={one.state !== 'refused'}
      variant={variant[one.state]}
      title={words.uploadStates[one.state](one.file.name)}
      actionLinks={
        one.state !== 'sent' && (
          <Button variant="link" isInline onClick={onRemove}>
            {words.leaveOut}
          </Button>
        )
      }
    >
      {one.error && (
        <List className="burano-breaks">
          {findings(one.error.message).map((finding) => (
            <ListItem key={finding}>{finding}</ListItem>
          ))}
        </List>
      )}
      {one.error instanceof ApiError && one.error.requestId && <Content component="small">{text.shell.request(one.error.requestId)}</Content>}
    </Alert>
  );
}
