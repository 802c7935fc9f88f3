import { Button, EmptyState, EmptyStateBody } from '@patternfly/react-core';
import { CubesIcon, SearchIcon } from '@patternfly/react-icons';

import { useFirstText } from '../text';

/** Explains an empty catalog, and the remedy. */
export function Nothing({ isSearched, onClear }: { isSearched: boolean; onClear: () => void }) {
  const words = useFirstText().catalog;
  if (!isSearched) {
    return (
      <EmptyState titleText={words.none} icon={CubesIcon} headingLevel="h2">
        <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
      </EmptyState>
    );
  }
  return (
    <EmptyState titleText={words.noMatch} icon={SearchIcon} headingLevel="h2">
      <Button variant="link" onClick={onClear}>
        {words.clear}
      </Button>
    </EmptyState>
  );
}
