import { Alert, AlertActionLink, Content } from '@patternfly/react-core';

import { ApiError } from '../api/client';
import { useFirstText } from '../text';

/** Shows an error, in the server's own words and with the id by which its operator finds the request. */
export function Failure({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  const text = useFirstText();
  const requestId = error instanceof ApiError ? error.requestId : '';
  const problems = error instanceof ApiError ? error.problems : [];
  return (
    <Alert
      variant="danger"
      isInline
      title={text.shell.failed}
      actionLinks={onRetry && <AlertActionLink onClick={onRetry}>{text.shell.tryAgain}</AlertActionLink>}
    >
      <Content component="p" className="burano-breaks">
        {error.message}
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
