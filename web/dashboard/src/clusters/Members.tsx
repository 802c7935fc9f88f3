import { Content, Label, LabelGroup, Title } from '@patternfly/react-core';

import { useText } from '../text';
import { counted, type Cluster } from './clusters';

/** The members of a cluster's etcd. */
export function Members({ cluster }: { cluster: Cluster }) {
  const words = useText().clusters;
  const list = cluster.members ?? [];
  const { members } = counted(cluster);
  return (
    <>
      <Title headingLevel="h2">{words.members}</Title>
      {list.length === 0 ? (
        <Content component="p">{words.noMembers}</Content>
      ) : (
        <>
          <Content component="p">
            {words.well}: {words.of(members.good, members.all)}
          </Content>
          <LabelGroup numLabels={20} aria-label={words.members}>
            {list.map((member) => (
              <Label key={member.name} status={member.healthy ? 'success' : 'danger'}>
                {`${member.name ?? ''}: ${member.healthy ? words.well : words.ill}${member.learner ? `, ${words.learner}` : ''}`}
              </Label>
            ))}
          </LabelGroup>
        </>
      )}
    </>
  );
}
