import { Alert, Button, Form, FormGroup, Modal, ModalBody, ModalFooter, ModalHeader, NumberInput } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { scaleWorkload, type WorkloadRef } from './workloads';

interface Props {
  of: WorkloadRef;
  /** How many pods it is to have now. */
  wanted: number;
  onDone: () => void;
  onClose: () => void;
}

/** As many as the server takes. */
const most = 10_000;

/** Changes how many pods a workload has. */
export function ScaleWorkload({ of, wanted, onDone, onClose }: Props) {
  const text = useText();
  const words = text.running;
  const id = useId();
  const [pods, setPods] = useState(wanted);
  const scale = useMutation({ mutationFn: () => scaleWorkload(of, pods), onSuccess: onDone });
  const choose = (value: number) => setPods(Math.min(Math.max(Math.round(value) || 0, 0), most));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (pods !== wanted) scale.mutate();
  };
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.scaleTitle(of.workload)} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {scale.error && <Failure error={scale.error} />}
          <FormGroup label={words.wanted} fieldId={`${id}-pods`}>
            <NumberInput
              inputProps={{ id: `${id}-pods` }}
              value={pods}
              min={0}
              max={most}
              minusBtnAriaLabel={text.clusters.less}
              plusBtnAriaLabel={text.clusters.more}
              inputAriaLabel={words.wanted}
              onMinus={() => choose(pods - 1)}
              onPlus={() => choose(pods + 1)}
              onChange={(event) => choose(Number(event.currentTarget.value))}
            />
          </FormGroup>
          {pods === 0 && <Alert variant="warning" isInline isPlain title={words.toNone} />}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={pods === wanted || scale.isPending} isLoading={scale.isPending}>
          {text.clusters.apply}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
