import { Button, CodeBlock, CodeBlockCode, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from '@patternfly/react-core';
import { TagsIcon } from '@patternfly/react-icons';
import { useState } from 'react';

import { useText } from '../text';
import { EditMetadata } from './EditMetadata';
import { masked } from './masked';

interface Props {
  metadata: unknown;
  /** The place for editing it: components have one, and not their content. */
  of?: { environment: string; object: string; name: string };
}

/** The metadata of an object besides its properties. */
export function Metadata({ metadata, of }: Props) {
  const text = useText().components;
  const [editing, setEditing] = useState(false);
  const kept = (typeof metadata === 'object' && metadata !== null ? metadata : {}) as Record<string, unknown>;
  const edit = of && (
    <Button variant="secondary" onClick={() => setEditing(true)}>
      {text.editMetadata}
    </Button>
  );
  return (
    <>
      {Object.keys(kept).length === 0 ? (
        <EmptyState titleText={text.noMetadata} icon={TagsIcon} headingLevel="h2">
          <EmptyStateBody>{text.noMetadataWhat}</EmptyStateBody>
          {edit && (
            <EmptyStateFooter>
              <EmptyStateActions>{edit}</EmptyStateActions>
            </EmptyStateFooter>
          )}
        </EmptyState>
      ) : (
        <>
          <CodeBlock className="burano-spaced">
            <CodeBlockCode>{JSON.stringify(masked(kept, text.hidden), null, 2)}</CodeBlockCode>
          </CodeBlock>
          {edit}
        </>
      )}
      {editing && of && <EditMetadata {...of} metadata={kept} onClose={() => setEditing(false)} />}
    </>
  );
}
