import { Alert, Button, Form, FormGroup, FormHelperText, HelperText, HelperTextItem, Modal, ModalBody, ModalFooter, ModalHeader, NumberInput, Radio } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import { ActionRun } from '../actions/ActionRun';
import { callAction } from '../actions/actions';
import { nameOf, type ObjectModel } from '../environments/environments';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import type { Cluster } from './clusters';
import { scaling, sizeOf, type Part } from './scaling';

interface Props {
  environment: string;
  object: ObjectModel;
  cluster: Cluster | undefined;
  onClose: () => void;
}

/** Makes a cluster larger or smaller, within the limits that its description sets. */
export function ScaleDialog({ environment, object, cluster, onClose }: Props) {
  const text = useText();
  const words = text.clusters;
  const id = useId();
  const client = useQueryClient();
  const [part, setPart] = useState<Part>('nodes');
  const [typed, setTyped] = useState<number | null>(null);
  const { now, most } = sizeOf(part, object, cluster);
  const wanted = typed ?? now;
  const change = scaling(part, object, now, wanted);
  const call = useMutation({
    mutationFn: async () => (change ? callAction(environment, change.action.id, { count: change.count }) : ''),
    onSuccess: () => client.invalidateQueries({ queryKey: ['environments'] }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (change) call.mutate();
  };
  const within = (value: number) => Math.min(Math.max(Math.round(value) || 1, 1), Math.max(most, 1));
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.scaleTitle(nameOf(object))} labelId={`${id}-title`} />
      <ModalBody>
        {call.data ? (
          <ActionRun environment={environment} task={call.data} />
        ) : (
          <Form id={id} onSubmit={submit}>
            {call.error && <Failure error={call.error} />}
            <FormGroup role="radiogroup" isInline aria-label={words.scale}>
              {(['nodes', 'gateways'] as const).map((each) => (
                <Radio
                  key={each}
                  id={`${id}-${each}`}
                  name={`${id}-part`}
                  label={words[each]}
                  isChecked={part === each}
                  onChange={() => {
                    setPart(each);
                    setTyped(null);
                  }}
                />
              ))}
            </FormGroup>
            <FormGroup label={words[part]} fieldId={`${id}-count`}>
              <NumberInput
                inputProps={{ id: `${id}-count` }}
                value={wanted}
                min={1}
                max={Math.max(most, 1)}
                minusBtnAriaLabel={words.less}
                plusBtnAriaLabel={words.more}
                inputAriaLabel={words[part]}
                onMinus={() => setTyped(within(wanted - 1))}
                onPlus={() => setTyped(within(wanted + 1))}
                onChange={(event) => setTyped(within(Number(event.currentTarget.value)))}
              />
              <FormHelperText>
                <HelperText>
                  <HelperTextItem>{words.limits(Math.max(most, 1))}</HelperTextItem>
                </HelperText>
              </FormHelperText>
            </FormGroup>
            {wanted < now && <Alert variant="warning" isInline isPlain title={words.leaving} />}
            {wanted !== now && !change && <Alert variant="info" isInline isPlain title={words.noScaling} />}
          </Form>
        )}
      </ModalBody>
      <ModalFooter>
        {!call.data && (
          <Button type="submit" form={id} isDisabled={!change || call.isPending} isLoading={call.isPending}>
            {words.apply}
          </Button>
        )}
        <Button variant={call.data ? 'primary' : 'link'} onClick={onClose}>
          {call.data ? text.shell.close : text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
