import { Alert, Card, CardBody, CardTitle, Content, PageSection } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';

import { showAge, showTime } from '../api/time';
import { useLanguage } from '../text';
import { findingsQuery, type Finding } from './findings';

/** The findings of an environment, or of one of its objects; nothing without findings. */
export function FindingCard({ environment, object }: { environment: string; object?: string }) {
  const { text } = useLanguage();
  const asked = useQuery(findingsQuery(environment));
  const shown = (asked.data ?? []).filter((one) => object === undefined || one.object_id === object);
  if (shown.length === 0) return null;
  return (
    <PageSection>
      <Card isCompact>
        <CardTitle component="h2">{text.findings.title}</CardTitle>
        <CardBody>
          {shown.map((finding) => (
            <Shown key={finding.id} finding={finding} />
          ))}
        </CardBody>
      </Card>
    </PageSection>
  );
}

const variants = { critical: 'danger', warning: 'warning', info: 'info' } as const;

function Shown({ finding }: { finding: Finding }) {
  const { text, language } = useLanguage();
  const words = text.findings;
  return (
    <Alert variant={variants[finding.severity]} isInline isPlain title={finding.text} className="burano-breaks">
      <Content component="p">{finding.mends}</Content>
      <Content component="small" title={showTime(finding.since, language)}>
        {words.since(showAge(finding.since, language))}
        {finding.repairs > 0 && ` · ${words.repairs(finding.repairs)}`}
        {finding.deployment_id && (
          <>
            {' · '}
            <Link
              to="/environments/$environment/deployments/$deployment"
              params={{ environment: finding.environment_id, deployment: finding.deployment_id }}
            >
              {words.lastRepair}
            </Link>
          </>
        )}
      </Content>
    </Alert>
  );
}
