import {
  Card,
  CardBody,
  CardFooter,
  CardTitle,
  Content,
  DescriptionList,
  DescriptionListDescription,
  DescriptionListGroup,
  DescriptionListTerm,
  Flex,
  FlexItem,
} from '@patternfly/react-core';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Loaded } from './Loaded';

interface Props<T> {
  title: string;
  what: string;
  asked: UseQueryResult<T, Error>;
  facts: (data: T) => ReactNode;
  /** Buttons that change the facts; none for users who may not. */
  commands: (data: T) => ReactNode[];
}

/** A card about a state of the server: its facts, and the buttons that change them. */
export function FactsCard<T>({ title, what, asked, facts, commands }: Props<T>) {
  const buttons = asked.data === undefined ? [] : commands(asked.data);
  return (
    <Card className="burano-spaced">
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody>
        <Content component="p">{what}</Content>
        <Loaded query={asked}>{facts}</Loaded>
      </CardBody>
      {buttons.length > 0 && (
        <CardFooter>
          <Flex>
            {buttons.map((button, i) => (
              <FlexItem key={i}>{button}</FlexItem>
            ))}
          </Flex>
        </CardFooter>
      )}
    </Card>
  );
}

/** Facts with their names. */
export const Facts = ({ rows }: { rows: [string, ReactNode][] }) => (
  <DescriptionList isCompact isHorizontal className="burano-spaced">
    {rows.map(([name, value]) => (
      <DescriptionListGroup key={name}>
        <DescriptionListTerm>{name}</DescriptionListTerm>
        <DescriptionListDescription className="burano-breaks">{value}</DescriptionListDescription>
      </DescriptionListGroup>
    ))}
  </DescriptionList>
);
