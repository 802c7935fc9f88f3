import { Breadcrumb, BreadcrumbItem, Content, EmptyState, EmptyStateBody, Label, PageBreadcrumb, PageSection, Switch, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { useState } from 'react';

import { showTime } from '../api/time';
import type { Package } from '../catalog/catalog';
import { useSession } from '../session/session';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { compare, comparedQuery, type Comparison } from './packages';

/** Packages side by side: the ones in the address, or all of a name. */
export function ComparePage() {
  const words = useLanguage().text.packages;
  const { ids, fqn } = useSearch({ from: '/packages/compare' });
  const packages = useQuery(comparedQuery({ ids, fqn }));
  return (
    <>
      <PageBreadcrumb>
        <Breadcrumb aria-label={words.breadcrumb}>
          <BreadcrumbItem render={({ className }) => <Link className={className} to="/packages">{words.title}</Link>} />
          <BreadcrumbItem isActive>{words.compare}</BreadcrumbItem>
        </Breadcrumb>
      </PageBreadcrumb>
      <Heading title={fqn ? words.versionsOf(fqn) : words.sideBySide} what={fqn ? words.versionsWhat : undefined} />
      <PageSection isFilled>
        <Loaded query={packages}>
          {(list) =>
            list.length > 0 ? (
              <SideBySide list={list} />
            ) : (
              <EmptyState titleText={words.none} headingLevel="h2">
                <EmptyStateBody>{words.gone}</EmptyStateBody>
              </EmptyState>
            )
          }
        </Loaded>
      </PageSection>
    </>
  );
}

function SideBySide({ list }: { list: Package[] }) {
  const words = useLanguage().text.packages;
  const [all, setAll] = useState(list.length < 2);
  const { attributes, classes } = compare(list);
  const shownAttributes = attributes.filter((one) => all || one.differs);
  const shownClasses = classes.filter((one) => all || one.differs);
  return (
    <>
      <Switch id="all" label={words.showAll} isChecked={all} onChange={(_event, yes) => setAll(yes)} />
      <Table aria-label={words.sideBySide} variant="compact" gridBreakPoint="grid-md">
        <Thead>
          <Tr>
            <Th>{words.attribute}</Th>
            {list.map((item) => (
              <Th key={item.id} modifier="wrap">
                {item.name}
                <Content component="small">{item.id}</Content>
              </Th>
            ))}
          </Tr>
        </Thead>
        <Tbody>
          {shownAttributes.map((one) => (
            <Tr key={one.name}>
              <Td dataLabel={words.attribute}>
                {words.attributes[one.name]} {one.differs && list.length > 1 && <Differs />}
              </Td>
              {one.values.map((value, i) => (
                <Td key={i} dataLabel={list[i]?.name} className="burano-breaks">
                  <Value name={one.name} value={value} />
                </Td>
              ))}
            </Tr>
          ))}
        </Tbody>
      </Table>
      {shownAttributes.length + shownClasses.length === 0 && <Content component="p">{words.same}</Content>}
      {shownClasses.length > 0 && (
        <>
          <Title headingLevel="h2">{words.classes}</Title>
          <Table aria-label={words.classes} variant="compact" gridBreakPoint="grid-md">
            <Thead>
              <Tr>
                <Th>{words.class}</Th>
                {list.map((item) => (
                  <Th key={item.id} modifier="wrap">
                    {item.name}
                  </Th>
                ))}
              </Tr>
            </Thead>
            <Tbody>
              {shownClasses.map((one) => (
                <Tr key={one.name}>
                  <Td dataLabel={words.class} className="burano-breaks">
                    {one.name} {one.differs && <Differs />}
                  </Td>
                  {one.has.map((has, i) => (
                    <Td key={i} dataLabel={list[i]?.name}>
                      {has ? words.there : words.notThere}
                    </Td>
                  ))}
                </Tr>
              ))}
            </Tbody>
          </Table>
        </>
      )}
    </>
  );
}

const Differs = () => (
  <Label isCompact color="orange">
    {useLanguage().text.packages.differs}
  </Label>
);

function Value({ name, value }: Pick<Comparison['attributes'][number], 'name'> & { value: Comparison['attributes'][number]['values'][number] }) {
  const { text, language } = useLanguage();
  const project = useSession().project;
  if (typeof value === 'boolean') return value ? text.packages.yes : text.packages.no;
  if (Array.isArray(value)) return value.join(', ');
  if (name === 'created' || name === 'updated') return showTime(value, language);
  if (name === 'owner_id' && value === project?.id) return project?.name ?? value;
  return value;
}
