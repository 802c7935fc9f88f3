import { CodeBlock, CodeBlockCode, EmptyState, EmptyStateBody } from '@patternfly/react-core';
import { TagsIcon } from '@patternfly/react-icons';

import { useText } from '../text';
import { masked } from './masked';

/** What is kept with an object besides its properties. */
export function Metadata({ metadata }: { metadata: unknown }) {
  const text = useText().components;
  if (!metadata || (typeof metadata === 'object' && Object.keys(metadata).length === 0)) {
    return (
      <EmptyState titleText={text.noMetadata} icon={TagsIcon} headingLevel="h2">
        <EmptyStateBody>{text.noMetadataWhat}</EmptyStateBody>
      </EmptyState>
    );
  }
  return (
    <CodeBlock>
      <CodeBlockCode>{JSON.stringify(masked(metadata, text.hidden), null, 2)}</CodeBlockCode>
    </CodeBlock>
  );
}
