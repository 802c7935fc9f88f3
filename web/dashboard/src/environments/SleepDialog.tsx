import { Alert, Content, List, ListItem, Skeleton } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';

import { Confirm } from '../shell/Confirm';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { fallAsleep, sleepQuery } from './environments';

interface Props {
  environment: string;
  name: string;
  onDone: (deployment: string) => void;
  onClose: () => void;
}

/** Shows which servers hibernating an environment stops, or waking it starts, and begins it. */
export function SleepDialog({ environment, name, onDone, onClose }: Props) {
  const text = useText();
  const words = text.environments;
  const plan = useQuery(sleepQuery(environment));
  const does = plan.data?.does ?? 'hibernate';
  return (
    <Confirm
      title={words.sleepTitles[does](name)}
      action={words.sleepActions[does]}
      harmless
      isReady={plan.data?.obstacles.length === 0}
      what={
        <>
          <Content component="p">{words.sleepWhat[does]}</Content>
          {plan.error && <Failure error={plan.error} onRetry={() => void plan.refetch()} />}
          {plan.isPending && <Skeleton height="4rem" screenreaderText={text.shell.loading} />}
          {plan.data?.obstacles.map((obstacle) => <Alert key={obstacle} variant="danger" isInline title={obstacle} />)}
          {plan.data?.notes.map((note) => <Alert key={note} variant="warning" isInline title={note} />)}
          <List>
            {plan.data?.servers.map((server) => (
              <ListItem key={server.id} className="burano-breaks">
                {server.cluster ? `${server.name} (${server.cluster})` : server.name}
              </ListItem>
            ))}
          </List>
        </>
      }
      send={() => fallAsleep(environment, does)}
      onDone={(answer) => onDone(answer.task_id)}
      onClose={onClose}
    />
  );
}
