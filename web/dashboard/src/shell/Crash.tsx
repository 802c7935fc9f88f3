import { Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, PageSection } from '@patternfly/react-core';
import { ExclamationCircleIcon } from '@patternfly/react-icons';

import { useFirstText } from '../text';

/** Shown instead of a page that failed: its program did not load, or it has an error. Reloading the document gets the present program. */
export function Crash({ error }: { error: unknown }) {
  const text = useFirstText();
  return (
    <PageSection isFilled>
      <EmptyState titleText={text.shell.crashed} icon={ExclamationCircleIcon} status="danger" headingLevel="h1">
        <EmptyStateBody>
          <p>{text.shell.crashedWhat}</p>
          <p className="burano-breaks">{error instanceof Error ? error.message : String(error)}</p>
        </EmptyStateBody>
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button onClick={() => location.reload()}>{text.shell.tryAgain}</Button>
            <Button variant="link" component="a" href="/dashboard/catalog">
              {text.shell.toStart}
            </Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      </EmptyState>
    </PageSection>
  );
}
