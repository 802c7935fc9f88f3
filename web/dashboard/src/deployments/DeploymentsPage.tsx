import { PageSection, Title } from '@patternfly/react-core';

import { useText } from '../text';

export function DeploymentsPage() {
  const text = useText();
  return (
    <PageSection>
      <Title headingLevel="h1">{text.shell.deployments}</Title>
    </PageSection>
  );
}
