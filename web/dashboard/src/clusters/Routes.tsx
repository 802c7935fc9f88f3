import { EmptyState, EmptyStateBody, Label, LabelGroup, Title } from '@patternfly/react-core';
import { RouteIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';

import { useText } from '../text';
import type { Cluster } from './clusters';

/** What the gateways of a cluster pass on, and to where. */
export function Routes({ cluster }: { cluster: Cluster }) {
  const words = useText().clusters;
  const list = cluster.routes ?? [];
  return (
    <>
      <Title headingLevel="h2">{words.routes}</Title>
      {list.length === 0 ? (
        <EmptyState titleText={words.noRoutes} icon={RouteIcon} headingLevel="h3" variant="sm">
          <EmptyStateBody>{words.noRoutesWhat}</EmptyStateBody>
        </EmptyState>
      ) : (
        <Table aria-label={words.routes} variant="compact" gridBreakPoint="grid-lg">
          <Thead>
            <Tr>
              <Th>{words.service}</Th>
              <Th>{words.port}</Th>
              <Th>{words.gatewayPort}</Th>
              <Th>{words.backends}</Th>
            </Tr>
          </Thead>
          <Tbody>
            {list.map((route) => (
              <Tr key={`${route.namespace}/${route.service}/${route.port}`}>
                <Td dataLabel={words.service} className="burano-breaks">
                  {route.namespace}/{route.service}
                </Td>
                <Td dataLabel={words.port}>{route.port}</Td>
                <Td dataLabel={words.gatewayPort}>{route.gateway_port}</Td>
                <Td dataLabel={words.backends}>
                  {(route.backends ?? []).length === 0 ? (
                    words.noBackends
                  ) : (
                    <LabelGroup numLabels={6} aria-label={words.backends}>
                      {(route.backends ?? []).map((backend) => {
                        const state = backend.draining ? words.draining : backend.ready ? words.ready : words.notReady;
                        return (
                          <Label key={`${backend.address}:${backend.port}`} isCompact status={backend.draining ? 'info' : backend.ready ? 'success' : 'warning'}>
                            {`${backend.address ?? ''}:${backend.port ?? ''} ${backend.node ? `(${backend.node}) ` : ''}${state}`}
                          </Label>
                        );
                      })}
                    </LabelGroup>
                  )}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
    </>
  );
}
