import { Alert, Button, Content, ExpandableSection } from '@patternfly/react-core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';

import { showTime } from '../api/time';
import { Failure } from '../shell/Failure';
import { useLanguage, useText } from '../text';
import { discardOther, openDraftsQuery, othersThan, takeUp, type Draft, type OpenDraft } from './draft';

interface Props {
  environment: string;
  user: string;
  draft: Draft | null;
}

/** Other drafts of the environment; one's own that was begun elsewhere can be taken up. */
export function OtherDrafts({ environment, user, draft }: Props) {
  const words = useText().draft;
  const open = useQuery(openDraftsQuery(environment));
  const others = othersThan(draft, open.data ?? []);
  if (open.error) return <Failure error={open.error} onRetry={() => void open.refetch()} />;
  if (others.length === 0) return null;
  return (
    <Alert variant="info" isInline isPlain className="burano-spaced" title={words.others(others.length)}>
      <ExpandableSection toggleText={words.whoElse}>
        <Content component="ul">
          {others.map((other, i) => (
            <Content component="li" key={other.id ?? i} className="burano-breaks">
              <One environment={environment} user={user} other={other} />
            </Content>
          ))}
        </Content>
      </ExpandableSection>
    </Alert>
  );
}

function One({ environment, user, other }: { environment: string; user: string; other: OpenDraft }) {
  const { text, language } = useLanguage();
  const words = text.draft;
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: (session: string) => (other.outdated ? discardOther(client, environment, session) : takeUp(client, user, environment, session)),
  });
  const holder = other.own ? words.ownElsewhere : other.user_name || other.user_id;
  const id = other.id;
  return (
    <>
      {holder} · {words.changedAt(showTime(other.updated, language))} · {other.outdated ? words.isOutdated : other.rejected ? words.isRefused : words.isCurrent}{' '}
      {id && (
        <Button variant="link" isInline onClick={() => change.mutate(id)} isDisabled={change.isPending}>
          {other.outdated ? words.discardOutdated : words.takeUp}
        </Button>
      )}
      {change.error && <Failure error={change.error} />}
    </>
  );
}
