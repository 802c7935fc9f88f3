import { Alert, AlertActionCloseButton, AlertActionLink, AlertGroup } from '@patternfly/react-core';
import { useNavigate } from '@tanstack/react-router';

import type { Deployment } from '../deployments/deployments';
import { useText } from '../text';

/** How a deployment has ended, in words alone. */
export function Said({ one }: { one: Deployment }) {
  const text = useText();
  return text.notices.ended(text.deployments.states[one.state ?? 'success']);
}

/** Notices of deployments that have ended, above whatever page is shown. */
export function Toasts({ ended, onClose }: { ended: Deployment[]; onClose: (one: Deployment) => void }) {
  const text = useText();
  const words = text.notices;
  const navigate = useNavigate();
  return (
    <AlertGroup isToast aria-label={words.title}>
      {ended.map((one) => {
        const failed = one.state === 'completed_w_errors';
        return (
          <Alert
            key={one.id}
            variant={failed ? 'danger' : one.state === 'completed_w_warnings' ? 'warning' : 'success'}
            title={words.ended(text.deployments.states[one.state ?? 'success'])}
            timeout={failed ? false : 15_000}
            onTimeout={() => onClose(one)}
            actionClose={<AlertActionCloseButton aria-label={text.shell.close} onClose={() => onClose(one)} />}
            actionLinks={
              <AlertActionLink
                onClick={() => {
                  onClose(one);
                  void navigate({
                    to: '/environments/$environment/deployments/$deployment',
                    params: { environment: one.environment_id ?? '', deployment: one.id ?? '' },
                  });
                }}
              >
                {words.show}
              </AlertActionLink>
            }
          >
            {one.action?.method === 'deploy' ? text.deployments.deployment : one.action ? text.deployments.action(one.action.method ?? '') : text.deployments.deletion}
          </Alert>
        );
      })}
    </AlertGroup>
  );
}
