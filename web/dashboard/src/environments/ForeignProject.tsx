import { Alert, PageSection } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';

import { useSession } from '../session/session';
import { useText } from '../text';
import { projectNamesQuery } from './projects';

/** Names the project of another project's environment: only its members may deploy it. */
export function ForeignProject({ project }: { project: string | undefined }) {
  const words = useText().environments;
  const own = useSession().project?.id;
  const isForeign = project !== undefined && project !== own;
  const names = useQuery({ ...projectNamesQuery, enabled: isForeign });
  if (!isForeign) return null;
  return (
    <PageSection>
      <Alert variant="info" isInline title={words.foreign(names.data?.get(project) ?? project)}>
        {words.foreignWhat}
      </Alert>
    </PageSection>
  );
}
