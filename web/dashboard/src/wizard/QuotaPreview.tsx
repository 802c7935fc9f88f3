import { Alert, Content, Label, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { useContext } from 'react';

import { shownQuery } from '../draft/draft';
import { useDraft } from '../draft/useDraft';
import { environmentQuery, type ObjectModel } from '../environments/environments';
import { useText } from '../text';
import { cloudQuery } from './cloud';
import { Place, useAskedRegion } from './place';
import { demandOf, idsOf, rowsOf } from './quota';

/** The draft's share of the project's quota with this application in it. */
export function QuotaPreview({ model }: { model: ObjectModel }) {
  const words = useText().wizard;
  const { environment } = useContext(Place);
  const { draft } = useDraft(environment);
  const region = useAskedRegion();
  const quota = useQuery({ ...cloudQuery('quota', region), enabled: region !== undefined });
  const flavors = useQuery({ ...cloudQuery('flavors', region), enabled: region !== undefined });
  const shown = useQuery(shownQuery(environment, draft));
  const deployed = useQuery(environmentQuery(environment));
  if (!quota.data?.quota || !flavors.data?.flavors || !shown.data || !deployed.data) return null;
  // Deployed servers are part of the used quota already.
  const demand = demandOf([shown.data.services, model], flavors.data.flavors, idsOf(deployed.data.services));
  if (demand.instances === 0) return null;
  const rows = rowsOf(quota.data.quota, demand);
  return (
    <section className="burano-review">
      <Title headingLevel="h3" size="md">
        {words.quota}
      </Title>
      <Content component="p">{words.quotaWhat}</Content>
      {rows.some((row) => row.over) && (
        <Alert variant="warning" isInline title={words.exceeds}>
          {words.exceedsWhat}
        </Alert>
      )}
      <Table variant="compact" aria-label={words.quota} gridBreakPoint="grid-md">
        <Thead>
          <Tr>
            <Th>{words.resource}</Th>
            <Th>{words.used}</Th>
            <Th>{words.more}</Th>
            <Th>{words.limit}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {rows.map((row) => (
            <Tr key={row.resource}>
              <Td dataLabel={words.resource}>{words.resources[row.resource]}</Td>
              <Td dataLabel={words.used}>{row.used}</Td>
              <Td dataLabel={words.more}>
                {row.more} {row.over && <Label status="danger">{words.over}</Label>}
              </Td>
              <Td dataLabel={words.limit}>{row.limit ?? words.unlimited}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </section>
  );
}
