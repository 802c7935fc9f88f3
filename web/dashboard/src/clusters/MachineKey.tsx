import { ClipboardCopy, Content, ExpandableSection } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { sshKeyQuery } from './clusters';

interface Props {
  environment: string;
  cluster: string;
}

/** How a machine that is no server of the cloud becomes a node: the key by which it lets Burano in. */
export function MachineKey({ environment, cluster }: Props) {
  const text = useText();
  const words = text.clusters;
  const [open, setOpen] = useState(false);
  const key = useQuery({ ...sshKeyQuery(environment, cluster), enabled: open });
  return (
    <ExpandableSection toggleText={words.machines} isExpanded={open} onToggle={(_event, next) => setOpen(next)}>
      <Content component="p">{words.machinesWhat}</Content>
      {key.error && <Failure error={key.error} onRetry={() => void key.refetch()} />}
      {key.data?.public_key && (
        <ClipboardCopy isReadOnly isCode hoverTip={text.actions.copy} clickTip={text.actions.copy} textAriaLabel={words.machineKey}>
          {key.data.public_key}
        </ClipboardCopy>
      )}
    </ExpandableSection>
  );
}
