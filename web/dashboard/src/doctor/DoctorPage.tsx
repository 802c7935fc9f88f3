import { Button, Content, Label, PageSection } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';

import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { doctorQuery, worstFirst } from './doctor';

const colour = { ok: 'success', warning: 'warning', failed: 'danger' } as const;

/** The checks of the server's settings and of the cloud, with remedies: for operators. */
export function DoctorPage() {
  const words = useLanguage().text.doctor;
  const look = useQuery(doctorQuery);
  return (
    <>
      <Heading title={words.title} what={words.what} help="operators">
        <Button variant="secondary" onClick={() => void look.refetch()} isLoading={look.isFetching} isDisabled={look.isFetching}>
          {words.again}
        </Button>
      </Heading>
      <PageSection isFilled>
        <Loaded query={look}>
          {(lines) => (
            <>
              <Content component="p" aria-live="polite">
                {words.summary(lines.filter((line) => line.state === 'failed').length, lines.filter((line) => line.state === 'warning').length)}
              </Content>
              <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-lg">
                <Thead>
                  <Tr>
                    <Th>{words.state}</Th>
                    <Th>{words.check}</Th>
                    <Th>{words.found}</Th>
                  </Tr>
                </Thead>
                <Tbody>
                  {worstFirst(lines).map((line, index) => (
                    <Tr key={index}>
                      <Td dataLabel={words.state} modifier="fitContent">
                        <Label status={colour[line.state]} isCompact>
                          {words.states[line.state]}
                        </Label>
                      </Td>
                      <Td dataLabel={words.check} modifier="fitContent">
                        {line.check}
                      </Td>
                      <Td dataLabel={words.found} className="burano-breaks">
                        {line.text}
                        {line.remedy && <Content component="small">{words.remedy(line.remedy)}</Content>}
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            </>
          )}
        </Loaded>
      </PageSection>
    </>
  );
}
