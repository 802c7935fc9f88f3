import { Button, Content, EmptyState, EmptyStateBody, Flex, FlexItem, Menu, MenuContent, MenuItem, MenuList, SearchInput, Skeleton, Title } from '@patternfly/react-core';
import { TimesIcon, TopologyIcon } from '@patternfly/react-icons';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';

import { modelQuery, type States } from '../components/components';
import { Properties } from '../components/Properties';
import { classOf, isBusy, type EnvironmentDetails } from '../environments/environments';
import { namesOf } from '../environments/objects';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { topologyOf, type GraphNode } from './graph';
import { Picture } from './Picture';

/** The objects of an environment as it is deployed, and how they hang together. */
export function TopologyTab({ details, states }: { details: EnvironmentDetails; states: States | undefined }) {
  const text = useText();
  const words = text.topology;
  const environment = details.id ?? '';
  const navigate = useNavigate();
  const busy = isBusy(details);
  const model = useQuery({ ...modelQuery(environment), refetchInterval: busy ? 3_000 : false });
  const [chosen, setChosen] = useState('');
  const topology = useMemo(
    () => topologyOf(model.data, { busy, states: Object.fromEntries((states?.components ?? []).map((one) => [one.id, one.state])) }),
    [model.data, states, busy],
  );
  const names = useMemo(() => namesOf(model.data), [model.data]);
  if (model.error) return <Failure error={model.error} onRetry={() => void model.refetch()} />;
  if (!model.data) return <Skeleton height="24rem" screenreaderText={text.shell.loading} />;
  if (topology.nodes.length === 0) {
    return (
      <EmptyState titleText={words.none} icon={TopologyIcon} headingLevel="h2">
        <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
      </EmptyState>
    );
  }
  const node = topology.nodes.find((each) => each.id === chosen);
  const open = (id: string) => {
    const target = topology.nodes.find((each) => each.id === id);
    const object = target?.object ? id : (target?.owner ?? '');
    if (object) void navigate({ to: '/environments/$environment/components/$object', params: { environment, object } });
  };
  return (
    <>
      <Legend />
      <div className="burano-topology-page">
        <Picture
          topology={topology}
          chosen={chosen}
          onChoose={setChosen}
          file={`${details.name ?? 'environment'}.svg`}
        />
        <div className="burano-topology-side">
          <Objects nodes={topology.nodes} chosen={chosen} onFocus={setChosen} onOpen={open} />
          {node && <Panel node={node} environment={environment} names={names} onClose={() => setChosen('')} />}
        </div>
      </div>
    </>
  );
}

function Legend() {
  const words = useText().topology;
  return (
    <Content component="small">{words.legend}</Content>
  );
}

function Panel({ node, environment, names, onClose }: { node: GraphNode; environment: string; names: Map<string, string>; onClose: () => void }) {
  const text = useText();
  const words = text.topology;
  const object = node.object?.['?']?.id ?? node.owner;
  return (
    <section aria-label={node.name} className="burano-panel">
      <Flex flexWrap={{ default: 'nowrap' }}>
        <FlexItem grow={{ default: 'grow' }}>
          <Title headingLevel="h2" size="md" className="burano-breaks">
            {node.name}
          </Title>
        </FlexItem>
        <FlexItem>
          <Button variant="plain" icon={<TimesIcon />} aria-label={text.shell.close} onClick={onClose} />
        </FlexItem>
      </Flex>
      <p>
        {words.kinds[node.kind]}
        {node.state !== 'none' && `: ${words.states[node.state]}`}
      </p>
      {node.object && (
        <Content component="small" className="burano-breaks">
          {classOf(node.object)}
        </Content>
      )}
      <p className="burano-spaced">
        <Link to="/environments/$environment/components/$object" params={{ environment, object }}>
          {node.object ? words.open : words.openOwner}
        </Link>
      </p>
      {node.object && <Properties object={node.object} environment={environment} names={names} stacked />}
    </section>
  );
}

/** The same objects as a list: arrows go through it and show each in the picture, Enter opens its page. */
function Objects({ nodes, chosen, onFocus, onOpen }: { nodes: GraphNode[]; chosen: string; onFocus: (id: string) => void; onOpen: (id: string) => void }) {
  const words = useText().topology;
  const [filter, setFilter] = useState('');
  const wanted = filter.toLowerCase();
  const found = nodes.filter((node) => node.name.toLowerCase().includes(wanted));
  return (
    <section aria-label={words.objects} className="burano-topology-list">
      <SearchInput aria-label={words.find} placeholder={words.find} value={filter} onChange={(_event, value) => setFilter(value)} onClear={() => setFilter('')} />
      {found.length === 0 ? (
        <Button variant="link" onClick={() => setFilter('')}>
          {words.noMatch}
        </Button>
      ) : (
        <Menu isPlain isScrollable activeItemId={chosen} onSelect={(_event, id) => onOpen(String(id))} aria-label={words.objects}>
          <MenuContent maxMenuHeight={chosen ? '14rem' : '32rem'}>
            <MenuList>
              {found.map((node) => (
                <MenuItem
                  key={node.id}
                  itemId={node.id}
                  onFocus={() => onFocus(node.id)}
                  description={`${words.kinds[node.kind]}${node.state === 'none' ? '' : `: ${words.states[node.state]}`}`}
                >
                  {node.name}
                </MenuItem>
              ))}
            </MenuList>
          </MenuContent>
        </Menu>
      )}
    </section>
  );
}
