import { Alert, AlertActionLink, Content } from '@patternfly/react-core';

import { ApiError, Unreachable } from '../api/client';
import { useFirstText } from '../text';

/** Shows an error, in the server's own words and with the id by which its operator finds the request. */
export function Failure({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const text = useFirstText();
  const requestId = error instanceof ApiError ? error.requestId : '';
  const problems = error instanceof ApiError ? error.problems : [];
  const foreign = error instanceof ApiError && error.isForeign;
  const message = error instanceof Unreachable ? text.shell.unreachable : foreign ? text.shell.foreign(error.status, error.message) : error.message;
  return (
    <Alert
      variant="danger"
      isInline
      title={text.shell.failed}
      actionLinks={onRetry && <AlertActionLink onClick={onRetry}>{text.shell.tryAgain}</AlertActionLink>}
    >
      <Content component="p" className="burano-breaks">
        {message}
      </Content>
      {problems.length > 0 && (
        <Content component="ul">
          {problems.map((problem, i) => (
            <Content component="li" key={i}>
              {problem.path}: {problem.message}
            </Content>
          ))}
        </Content>
      )}
      {requestId && <Content component="small">{text.shell.request(requestId)}</Content>}
    </Alert>
  );
}
