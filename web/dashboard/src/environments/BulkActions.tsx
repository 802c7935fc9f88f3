import { Alert, Button, List, ListItem, ToolbarItem } from '@patternfly/react-core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { deployUnseen } from '../draft/draft';
import { useSession } from '../session/session';
import { Confirm } from '../shell/Confirm';
import { useText } from '../text';
import { forEach, namesOfAll, type Refused } from './bulk';
import { DeleteDialog } from './DeleteDialog';
import { deleteEnvironment, environmentsQuery, isBusy, type Environment } from './environments';

type Kind = 'deploy' | 'delete' | 'abandon';

/** The commands for all chosen environments at once. */
export function BulkActions({ chosen, onDone }: { chosen: Environment[]; onDone: (refused: Refused[]) => void }) {
  const words = useText().environments;
  const client = useQueryClient();
  const user = useSession().user?.id ?? '';
  const [asked, setAsked] = useState<Kind | null>(null);
  const idle = chosen.filter((one) => !isBusy(one));
  const deploy = async (one: Environment) => {
    if (!(await deployUnseen(client, user, one.id ?? ''))) throw new Error(words.lookFirst);
  };
  const doing: Record<Kind, { title: string; what: string; of: Environment[]; send: (one: Environment) => Promise<unknown> }> = {
    deploy: { title: words.deployMany(idle.length), what: `${namesOfAll(idle)}. ${words.deployManyWhat}`, of: idle, send: deploy },
    delete: { title: words.deleteMany(chosen.length), what: '', of: chosen, send: (one) => deleteEnvironment(one.id ?? '') },
    abandon: { title: words.abandonMany(chosen.length), what: `${namesOfAll(chosen)}. ${words.abandonWhat}`, of: chosen, send: (one) => deleteEnvironment(one.id ?? '', true) },
  };
  const run = asked && doing[asked];
  const dialog = run && {
    title: run.title,
    send: async () => onDone(await forEach(run.of, run.send)),
    onDone: () => {
      setAsked(null);
      void client.invalidateQueries({ queryKey: environmentsQuery.queryKey });
    },
    onClose: () => setAsked(null),
  };
  return (
    <>
      {(['deploy', 'delete', 'abandon'] as const).map((kind) => (
        <ToolbarItem key={kind}>
          <Button variant={kind === 'deploy' ? 'secondary' : 'link'} isDanger={kind !== 'deploy'} isDisabled={doing[kind].of.length === 0} onClick={() => setAsked(kind)}>
            {words[kind]}
          </Button>
        </ToolbarItem>
      ))}
      {dialog && (asked === 'delete' ? <DeleteDialog {...dialog} of={run.of} /> : <Confirm {...dialog} what={run.what} action={words[asked]} />)}
    </>
  );
}

/** Which environments were refused, and why. */
export function RefusedList({ refused, onClose }: { refused: Refused[]; onClose: () => void }) {
  const text = useText();
  if (refused.length === 0) return null;
  return (
    <Alert
      variant="danger"
      isInline
      title={text.shell.failed}
      actionClose={<Button variant="plain" aria-label={text.shell.close} onClick={onClose}>×</Button>}
    >
      <List>
        {refused.map(({ environment, error }) => (
          <ListItem key={environment.id} className="burano-breaks">
            {environment.name}: {error.message}
          </ListItem>
        ))}
      </List>
    </Alert>
  );
}
