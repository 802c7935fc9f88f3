import {
  Button,
  Form,
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  Radio,
  TextInput,
} from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';

import { useSession } from '../session/session';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { groupsFor, saveKubeconfig } from './clusters';

interface Props {
  environment: string;
  cluster: string;
  name: string;
  onDone: () => void;
  onClose: () => void;
}

const lifetimes = ['1h', '8h', '24h'] as const;

/** Downloads a kubeconfig with chosen rights, namespace and lifetime, or one that signs in by Keystone. */
export function KubeconfigDialog({ environment, cluster, name, onDone, onClose }: Props) {
  const text = useText();
  const words = text.kubeconfig;
  const id = useId();
  const groups = groupsFor(useSession().rules ?? []);
  const [keystone, setKeystone] = useState(false);
  const [group, setGroup] = useState(groups[0] ?? '');
  const [namespace, setNamespace] = useState('');
  const [lifetime, setLifetime] = useState<string>('24h');
  const attempt = useMutation({
    mutationFn: () => saveKubeconfig(environment, cluster, name, { namespace: namespace.trim(), ...(keystone ? { sign_in: 'keystone' as const } : { group, lifetime }) }),
    onSuccess: onDone,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    attempt.mutate();
  };
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={text.clusters.kubeconfig} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={submit}>
          {attempt.error && <Failure error={attempt.error} />}
          <FormGroup label={words.signIn} role="radiogroup">
            <Radio
              id={`${id}-certificate`}
              name={`${id}-sign-in`}
              label={words.certificate}
              description={words.certificateWhat}
              isChecked={!keystone}
              onChange={() => setKeystone(false)}
            />
            <Radio id={`${id}-keystone`} name={`${id}-sign-in`} label={words.keystone} description={words.keystoneWhat} isChecked={keystone} onChange={() => setKeystone(true)} />
          </FormGroup>
          {!keystone && (
            <>
              <FormGroup label={words.group} fieldId={`${id}-group`}>
                <FormSelect id={`${id}-group`} value={group} onChange={(_event, value) => setGroup(value)}>
                  {groups.map((one) => (
                    <FormSelectOption key={one} value={one} label={words.groups[one] ?? one} />
                  ))}
                </FormSelect>
              </FormGroup>
              <FormGroup label={words.lifetime} fieldId={`${id}-lifetime`}>
                <FormSelect id={`${id}-lifetime`} value={lifetime} onChange={(_event, value) => setLifetime(value)}>
                  {lifetimes.map((one) => (
                    <FormSelectOption key={one} value={one} label={words.lifetimes[one]} />
                  ))}
                </FormSelect>
              </FormGroup>
            </>
          )}
          <FormGroup label={words.namespace} fieldId={`${id}-namespace`}>
            <TextInput id={`${id}-namespace`} value={namespace} onChange={(_event, value) => setNamespace(value)} maxLength={63} />
            <FormHelperText>
              <HelperText>
                <HelperTextItem>{words.namespaceWhat}</HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} isDisabled={attempt.isPending} isLoading={attempt.isPending}>
          {words.download}
        </Button>
        <Button variant="link" onClick={onClose}>
          {text.shell.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
