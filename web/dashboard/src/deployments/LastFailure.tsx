import { Alert } from '@patternfly/react-core';
import { Link } from '@tanstack/react-router';

import { showTime } from '../api/time';
import { failuresOf, type Failure, type States } from '../components/components';
import { isBusy, type EnvironmentDetails } from '../environments/environments';
import { useLanguage } from '../text';
import { sentenceOf } from './failure';

/** How many failures are shown; the components have all. */
const most = 3;

/** The failures that an environment, or one component of it, is left in, with the way to their deployments. */
export function LastFailure({ details, states }: { details: EnvironmentDetails; states: Pick<States, 'deployment' | 'failures' | 'components'> }) {
  if (isBusy(details)) return null;
  const environment = details.id ?? '';
  return failuresOf(states)
    .slice(0, most)
    .map((failure) => <Failed key={`${failure.run.deployment_id} ${failure.component}`} environment={environment} failure={failure} />);
}

function Failed({ environment, failure: { component, name, run } }: { environment: string; failure: Failure }) {
  const { text, language } = useLanguage();
  const words = text.deployments;
  const sentence = sentenceOf({ text: run.text, entity_id: component }) || words.noCause;
  const time = showTime(run.finished, language);
  return (
    <Alert variant={run.kind === 'action' ? 'warning' : 'danger'} isInline title={sentence} className="burano-breaks burano-spaced">
      {component && (
        <p>
          {words.object}:{' '}
          <Link to="/environments/$environment/components/$object" params={{ environment, object: component }}>
            {name || component}
          </Link>
        </p>
      )}
      <p>
        <Link to="/environments/$environment/deployments/$deployment" params={{ environment, deployment: run.deployment_id }}>
          {run.kind === 'action' ? words.toFailedAction(run.method ?? '', time) : words.toFailed(time)}
        </Link>
      </p>
    </Alert>
  );
}
