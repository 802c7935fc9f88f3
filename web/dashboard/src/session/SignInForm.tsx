import {
  ActionGroup,
  Alert,
  Button,
  Form,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  TextInput,
  ToggleGroup,
  ToggleGroupItem,
} from '@patternfly/react-core';
import { ExternalLinkAltIcon } from '@patternfly/react-icons';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';

import { useFirstText } from '../text';
import { leave, providersQuery, renew } from './federation';
import { readSession, signIn, type Credentials, type SignedIn } from './session';

interface Props {
  /** The former user; then only the secret is asked for. */
  former?: SignedIn | null;
  onSignedIn: (session: SignedIn) => void;
}

/** The sign-in by a password or an application credential. */
export function SignInForm({ former, onSignedIn }: Props) {
  const text = useFirstText();
  const [byCredential, setByCredential] = useState(Boolean(former?.application_credential));
  const [fields, setFields] = useState({
    user: former?.user?.name ?? '',
    domain: former?.user?.domain?.name ?? 'Default',
    password: '',
    project: former?.project?.id ?? '',
    credential: former?.application_credential?.id ?? '',
    secret: '',
  });
  const [isEmpty, setEmpty] = useState(false);
  const attempt = useMutation({ mutationFn: signIn, onSuccess: onSignedIn });
  const providers = useQuery(providersQuery).data ?? [];
  const federated = useMutation({
    mutationFn: (provider: string) =>
      former
        ? renew(provider, former.project?.id ?? '', () => void readSession().then((now) => now.user?.id === former.user?.id && onSignedIn(now)))
        : leave(provider, fields.project),
  });
  const error = attempt.error ?? federated.error;
  const field = (name: keyof typeof fields) => ({
    id: `signin-${name}`,
    name,
    value: fields[name],
    onChange: (_event: FormEvent<HTMLInputElement>, value: string) => {
      setFields({ ...fields, [name]: value });
      setEmpty(false);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const empty = (byCredential ? (['credential', 'secret'] as const) : (['user', 'password'] as const)).find((name) => !fields[name]);
    if (empty) {
      setEmpty(true);
      document.getElementById(`signin-${empty}`)?.focus();
      return;
    }
    const credentials: Credentials = byCredential
      ? { application_credential: fields.credential, secret: fields.secret, domain: fields.domain || 'Default' }
      : {
          user: fields.user,
          domain: fields.domain || 'Default',
          password: fields.password,
          ...(fields.project ? { project: fields.project } : {}),
        };
    attempt.mutate(credentials);
  };
  return (
    <Form onSubmit={submit}>
      {isEmpty ? (
        <Alert variant="danger" isInline title={byCredential ? text.session.emptyCredential : text.session.emptyPassword} component="p" />
      ) : (
        error && <Alert variant="danger" isInline title={error.message} component="p" />
      )}
      {!former && (
        <ToggleGroup aria-label={text.session.title}>
          <ToggleGroupItem text={text.session.byPassword} isSelected={!byCredential} onChange={() => setByCredential(false)} />
          <ToggleGroupItem text={text.session.byCredential} isSelected={byCredential} onChange={() => setByCredential(true)} />
        </ToggleGroup>
      )}
      {byCredential ? (
        <>
          <FormGroup label={text.session.credential} fieldId="signin-credential" isRequired>
            <TextInput {...field('credential')} isRequired autoComplete="username" isDisabled={Boolean(former)} />
          </FormGroup>
          <FormGroup label={text.session.secret} fieldId="signin-secret" isRequired>
            <TextInput {...field('secret')} isRequired type="password" autoComplete="current-password" />
          </FormGroup>
        </>
      ) : (
        <>
          <FormGroup label={text.session.user} fieldId="signin-user" isRequired>
            <TextInput {...field('user')} isRequired autoComplete="username" isDisabled={Boolean(former)} autoFocus={!former} />
          </FormGroup>
          <FormGroup label={text.session.password} fieldId="signin-password" isRequired>
            <TextInput {...field('password')} isRequired type="password" autoComplete="current-password" />
          </FormGroup>
          {!former && (
            <>
              <FormGroup label={text.session.domain} fieldId="signin-domain">
                <TextInput {...field('domain')} />
              </FormGroup>
              <FormGroup label={text.session.project} fieldId="signin-project">
                <TextInput {...field('project')} />
                <FormHelperText>
                  <HelperText>
                    <HelperTextItem>{text.session.projectHelp}</HelperTextItem>
                  </HelperText>
                </FormHelperText>
              </FormGroup>
            </>
          )}
        </>
      )}
      <ActionGroup>
        <Button type="submit" isBlock isDisabled={attempt.isPending} isLoading={attempt.isPending}>
          {text.session.signIn}
        </Button>
      </ActionGroup>
      {providers.map((provider) => (
        <Button
          key={provider.id}
          variant="secondary"
          isBlock
          onClick={() => federated.mutate(provider.id)}
          isDisabled={federated.isPending}
          icon={former ? <ExternalLinkAltIcon /> : undefined}
        >
          {text.session.byProvider(provider.name)}
        </Button>
      ))}
    </Form>
  );
}
