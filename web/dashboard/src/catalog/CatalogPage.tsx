import { PageSection, Title } from '@patternfly/react-core';

import { useText } from '../text';

export function CatalogPage() {
  const text = useText();
  return (
    <PageSection>
      <Title headingLevel="h1">{text.shell.catalog}</Title>
    </PageSection>
  );
}
