import { Alert, Button, List, ListItem, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId } from 'react';

import { ActionRun } from '../actions/ActionRun';
import { callAction } from '../actions/actions';
import { showTime } from '../api/time';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import type { Snapshot } from './snapshots';

interface Props {
  environment: string;
  /** The id of the cluster's action. */
  action: string;
  snapshot: Snapshot;
  onClose: () => void;
}

/** Shows the loss by a restore, then restores, and shows the progress. */
export function RestoreDialog({ environment, action, snapshot, onClose }: Props) {
  const { text, language } = useLanguage();
  const words = text.snapshots;
  const id = useId();
  const client = useQueryClient();
  const call = useMutation({
    mutationFn: () => callAction(environment, action, { snapshot: snapshot.id }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['environments'] }),
  });
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.restoreTitle(snapshot.cluster_name, showTime(snapshot.created, language))} labelId={`${id}-title`} titleIconVariant="warning" />
      <ModalBody>
        {call.data ? (
          <ActionRun environment={environment} task={call.data} />
        ) : (
          <>
            {call.error && <Failure error={call.error} />}
            <Alert variant="warning" isInline isPlain title={words.lost}>
              <List>
                {words.losses.map((loss) => (
                  <ListItem key={loss}>{loss}</ListItem>
                ))}
              </List>
            </Alert>
          </>
        )}
      </ModalBody>
      <ModalFooter>
        {!call.data && (
          <Button variant="danger" onClick={() => call.mutate()} isDisabled={call.isPending} isLoading={call.isPending}>
            {words.restore}
          </Button>
        )}
        <Button variant={call.data ? 'primary' : 'link'} onClick={onClose}>
          {call.data ? text.shell.close : text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
