import { Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, PageSection } from '@patternfly/react-core';
import { SearchIcon } from '@patternfly/react-icons';
import { useNavigate } from '@tanstack/react-router';

import { useFirstText } from '../text';

/** Shown where no page is. */
export function NotFound() {
  const text = useFirstText();
  const navigate = useNavigate();
  return (
    <PageSection isFilled>
      <EmptyState titleText={text.shell.notFound} icon={SearchIcon} headingLevel="h1">
        <EmptyStateBody>{text.shell.notFoundWhat}</EmptyStateBody>
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button onClick={() => void navigate({ to: '/catalog' })}>{text.shell.toStart}</Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      </EmptyState>
    </PageSection>
  );
}
