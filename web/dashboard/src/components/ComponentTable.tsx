import { Pagination } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';

import { ActionMenu } from '../actions/ActionMenu';
import { RemoveApplication } from '../draft/RemoveApplication';
import { classOf, isBusy, nameOf, type EnvironmentDetails } from '../environments/environments';
import { StateLabel } from '../environments/StateLabel';
import { useText } from '../text';
import { ClassLogo } from './ClassLogo';
import { lastReportsQuery, type LastReports, type States } from './components';
import { Endpoints } from './Endpoints';
import { LastReport } from './LastReport';

/** Rows with menus take their time: hundreds of them hold the page up. */
const perPage = 20;

/** The components of an environment, of its draft where there is one; user is whose draft they are removed from. */
export function ComponentTable({ details, states, user }: { details: EnvironmentDetails; states: States | undefined; user: string }) {
  const text = useText();
  const words = text.environments;
  const environment = details.id ?? '';
  const reports = useQuery(lastReportsQuery(environment, details));
  const last: LastReports = reports.data ?? {};
  const stateOf = new Map(states?.components.map((one) => [one.id, one.state]));
  const [page, setPage] = useState(1);
  const services = details.services ?? [];
  const pages = Math.max(1, Math.ceil(services.length / perPage));
  const shown = services.slice((Math.min(page, pages) - 1) * perPage, Math.min(page, pages) * perPage);
  return (
    <>
      <Table aria-label={words.components} variant="compact" gridBreakPoint="grid-lg">
        <Thead>
          <Tr>
            <Th width={25}>{words.name}</Th>
            <Th width={20}>{words.type}</Th>
            <Th width={15}>{text.components.state}</Th>
            <Th>{text.components.lastReport}</Th>
            <Th screenReaderText={words.actions} />
          </Tr>
        </Thead>
        <Tbody>
          {shown.map((service) => {
            const id = service['?']?.id ?? '';
            return (
              <Tr key={id}>
                <Td dataLabel={words.name} className="burano-breaks">
                  <span className="burano-named">
                    <ClassLogo className={classOf(service)} />
                    <Link to="/environments/$environment/components/$object" params={{ environment, object: id }}>
                      {nameOf(service)}
                    </Link>
                  </span>
                  <Endpoints object={service} />
                </Td>
                <Td dataLabel={words.type} className="burano-breaks" title={classOf(service)}>
                  {classOf(service).split('.').pop()}
                </Td>
                <Td dataLabel={text.components.state}>
                  <StateLabel state={stateOf.get(id)} />
                </Td>
                <Td dataLabel={text.components.lastReport} className="burano-breaks">
                  <LastReport report={last[id]} />
                </Td>
                <Td isActionCell modifier="nowrap">
                  <ActionMenu environment={details} object={service} />
                  <RemoveApplication environment={environment} user={user} application={service} isDisabled={isBusy(details)} />
                </Td>
              </Tr>
            );
          })}
        </Tbody>
      </Table>
      {pages > 1 && (
        <Pagination
          itemCount={services.length}
          perPage={perPage}
          page={Math.min(page, pages)}
          perPageOptions={[]}
          onSetPage={(_event, next) => setPage(next)}
          variant="bottom"
          titles={{ paginationAriaLabel: words.components }}
        />
      )}
    </>
  );
}
