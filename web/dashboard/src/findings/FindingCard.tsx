import { Alert, Card, CardBody, CardTitle, Content, PageSection } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';

import { showAge, showTime } from '../api/time';
import { useLanguage } from '../text';
import { findingsQuery, titleOf, type Finding } from './findings';
import { linkOf } from './remedies';

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
    <Alert variant={variants[finding.severity]} isInline isPlain title={titleOf(finding, words)} className="burano-breaks">
      {words.titles[finding.kind] && <Content component="p">{finding.text}</Content>}
      <Remedies finding={finding} />
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

/** The ways to mend a finding, with links to the pages of their commands. A kind that is not known has the server's words. */
function Remedies({ finding }: { finding: Finding }) {
  const words = useLanguage().text.findings;
  const known = finding.remedies.filter((one) => words.remedies[one.kind]);
  if (known.length === 0) return <Content component="p">{finding.mends}</Content>;
  return (
    <Content component="p">
      {known.map((one, i) => {
        const link = linkOf(one, finding);
        const label = words.remedies[one.kind]?.(one.node ?? '') ?? '';
        return (
          <span key={one.kind}>
            {i > 0 && ' · '}
            {link ? <Link {...link}>{label}</Link> : label}
          </span>
        );
      })}
    </Content>
  );
}
