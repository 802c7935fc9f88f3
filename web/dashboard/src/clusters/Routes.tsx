import { Alert, Content, EmptyState, EmptyStateBody, Label, LabelGroup, Title } from '@patternfly/react-core';
import { RouteIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';

import { showBytes } from '../api/bytes';
import { Failure } from '../shell/Failure';
import { useLanguage } from '../text';
import type { Cluster } from './clusters';
import { Sparkline } from './Sparkline';
import { portTraffic, trafficQuery, type PortTraffic } from './traffic';

type Route = NonNullable<Cluster['routes']>[number];
type Backend = NonNullable<Route['backends']>[number];

interface Props {
  environment: string;
  object: string;
  cluster: Cluster;
  /** The text of an empty list. */
  none: string;
}

/** The routes of a cluster's gateways, their backends, and their present traffic. */
export function Routes({ environment, object, cluster, none }: Props) {
  const words = useLanguage().text.clusters;
  const list = cluster.routes ?? [];
  const asked = useQuery({ ...trafficQuery(environment, object), enabled: list.length > 0 });
  const history = asked.data ?? [];
  const silent = history.at(-1)?.gateways.filter((gateway) => gateway.problem !== '') ?? [];
  return (
    <>
      <Title headingLevel="h2">{words.routes}</Title>
      {list.length === 0 ? (
        <EmptyState titleText={words.noRoutes} icon={RouteIcon} headingLevel="h3" variant="sm">
          <EmptyStateBody>{none}</EmptyStateBody>
        </EmptyState>
      ) : (
        <>
          <Content component="small">{words.trafficWhat}</Content>
          {asked.error && <Failure error={asked.error} onRetry={() => void asked.refetch()} />}
          {silent.map((gateway) => (
            <Alert key={gateway.name} variant="warning" isInline isPlain title={words.silent(gateway.name)} className="burano-breaks">
              {gateway.problem}
            </Alert>
          ))}
          <Table aria-label={words.routes} variant="compact" gridBreakPoint="grid-xl">
            <Thead>
              <Tr>
                <Th width={20}>{words.service}</Th>
                <Th>{words.port}</Th>
                <Th modifier="wrap">{words.gatewayPort}</Th>
                <Th>{words.connections}</Th>
                <Th>{words.data}</Th>
                <Th>{words.errors}</Th>
                <Th width={25}>{words.backends}</Th>
              </Tr>
            </Thead>
            <Tbody>
              {list.map((route) => (
                <RouteRow key={`${route.namespace}/${route.service}/${route.port}`} route={route} traffic={portTraffic(history, route.gateway_port ?? 0)} />
              ))}
            </Tbody>
          </Table>
        </>
      )}
    </>
  );
}

function RouteRow({ route, traffic }: { route: Route; traffic: PortTraffic | null }) {
  const { text, language } = useLanguage();
  const words = text.clusters;
  const backends = route.backends ?? [];
  const number = new Intl.NumberFormat(language);
  const rate = (bytes: number | null) => (bytes === null ? '–' : words.perSecond(showBytes(bytes, language)));
  return (
    <Tr>
      <Td dataLabel={words.service} className="burano-breaks">
        {route.namespace}/{route.service}
      </Td>
      <Td dataLabel={words.port} modifier="nowrap">{route.port}</Td>
      <Td dataLabel={words.gatewayPort}>{route.gateway_port}</Td>
      <Td dataLabel={words.connections}>
        {traffic ? (
          <>
            <Sparkline values={traffic.series} label={words.lately(number.format(Math.max(...traffic.series)))} />
            <div>{words.perSecond(number.format(traffic.perSecond))}</div>
            <Content component="small">{words.open(number.format(traffic.open))}</Content>
          </>
        ) : (
          words.unknown
        )}
      </Td>
      <Td dataLabel={words.data} modifier="nowrap">
        {traffic && (
          <>
            <div>{words.received(rate(traffic.bytesIn))}</div>
            <div>{words.sent(rate(traffic.bytesOut))}</div>
          </>
        )}
      </Td>
      <Td dataLabel={words.errors}>{traffic && <Errors traffic={traffic} />}</Td>
      <Td dataLabel={words.backends}>
        {backends.length === 0 ? (
          words.noBackends
        ) : (
          <LabelGroup numLabels={6} aria-label={words.backends}>
            {backends.map((backend) => (
              <BackendLabel key={`${backend.address}:${backend.port}`} backend={backend} traffic={traffic} />
            ))}
          </LabelGroup>
        )}
      </Td>
    </Tr>
  );
}

function Errors({ traffic }: { traffic: PortTraffic }) {
  const { text, language } = useLanguage();
  const words = text.clusters;
  const number = new Intl.NumberFormat(language);
  return (
    <>
      {traffic.newErrors > 0 ? (
        <Label isCompact status="danger">
          {words.newErrors(number.format(traffic.newErrors))}
        </Label>
      ) : (
        words.noErrors
      )}
      <Content component="small">{words.allErrors(number.format(traffic.errors), number.format(traffic.retries))}</Content>
    </>
  );
}

function BackendLabel({ backend, traffic }: { backend: Backend; traffic: PortTraffic | null }) {
  const { text, language } = useLanguage();
  const words = text.clusters;
  const address = `${backend.address ?? ''}:${backend.port ?? ''}`;
  const counted = traffic?.backends.get(address);
  const down = counted?.state === 'down';
  const state = down ? words.down : backend.draining ? words.draining : backend.ready ? words.ready : words.notReady;
  const rate = counted ? `, ${words.perSecond(new Intl.NumberFormat(language).format(counted.perSecond))}` : '';
  return (
    <Label isCompact status={down ? 'danger' : backend.draining ? 'info' : backend.ready ? 'success' : 'warning'} title={counted?.check || undefined}>
      {`${address} ${backend.node ? `(${backend.node}) ` : ''}${state}${rate}`}
    </Label>
  );
}
