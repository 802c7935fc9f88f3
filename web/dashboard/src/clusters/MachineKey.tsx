import { Button, ClipboardCopy, Content, ExpandableSection } from '@patternfly/react-core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { Failure } from '../shell/Failure';
import { useSession } from '../session/session';
import { useLanguage } from '../text';
import { joinCommand, makeJoinToken, sshKeyQuery } from './clusters';

interface Props {
  environment: string;
  cluster: string;
}

/** How a machine that is no server of the cloud becomes a node: by a command that is run there, or by the key by which it lets Burano in. */
export function MachineKey({ environment, cluster }: Props) {
  const { text, language } = useLanguage();
  const words = text.clusters;
  const [open, setOpen] = useState(false);
  const key = useQuery({ ...sshKeyQuery(environment, cluster), enabled: open });
  const rules = useSession().rules ?? [];
  const token = useMutation({ mutationFn: () => makeJoinToken(environment, cluster) });
  return (
    <ExpandableSection toggleText={words.machines} isExpanded={open} onToggle={(_event, next) => setOpen(next)}>
      <Content component="p">{words.machinesWhat}</Content>
      {rules.includes('execute_action') && (
        <Button variant="secondary" onClick={() => token.mutate()} isDisabled={token.isPending} isLoading={token.isPending}>
          {words.joinMake}
        </Button>
      )}
      {token.error && <Failure error={token.error} />}
      {token.data && (
        <>
          <ClipboardCopy isReadOnly isCode hoverTip={text.actions.copy} clickTip={text.actions.copy} textAriaLabel={words.joinCommand}>
            {joinCommand(window.location.origin, token.data)}
          </ClipboardCopy>
          <Content component="small">{words.joinUntil(new Intl.DateTimeFormat(language, { timeStyle: 'short', dateStyle: 'short' }).format(new Date(token.data.expires_at)))}</Content>
        </>
      )}
      {key.error && <Failure error={key.error} onRetry={() => void key.refetch()} />}
      {key.data?.public_key && (
        <ClipboardCopy isReadOnly isCode hoverTip={text.actions.copy} clickTip={text.actions.copy} textAriaLabel={words.machineKey}>
          {key.data.public_key}
        </ClipboardCopy>
      )}
    </ExpandableSection>
  );
}
