import { Alert, Content } from '@patternfly/react-core';
import { Link } from '@tanstack/react-router';

import { useFollow } from '../api/follow';
import { useWatch } from '../notices/useWatch';
import { useText } from '../text';
import { ActionResult } from './ActionResult';

/** An action while it runs, and its result. */
export function ActionRun({ environment, task }: { environment: string; task: string }) {
  const text = useText().actions;
  const live = useFollow(task);
  useWatch(task, live.state !== '' && !live.ended, live.ended);
  return (
    <div role="status">
      {!live.ended && (
        <Alert variant="info" isInline title={text.running}>
          {live.reports.at(-1)?.text ?? text.runningWhat}
        </Alert>
      )}
      {live.ended && <ActionResult environment={environment} task={task} />}
      <Content component="p">
        <Link to="/environments/$environment/deployments/$deployment" params={{ environment, deployment: task }}>
          {text.live}
        </Link>
      </Content>
    </div>
  );
}
