import { Content, Flex, FlexItem, PageSection, Title } from '@patternfly/react-core';
import type { ReactNode } from 'react';

import { HelpLink } from '../help/HelpLink';

interface Props {
  title: string;
  /** The purpose of the page. */
  what?: string;
  /** The document that explains it. */
  help?: string;
  children?: ReactNode;
}

/** The head of a page: its title, its purpose, and its commands. */
export function Heading({ title, what, help, children }: Props) {
  return (
    <PageSection>
      <Flex flexWrap={{ default: 'wrap', lg: 'nowrap' }} alignItems={{ default: 'alignItemsFlexStart' }}>
        <FlexItem grow={{ default: 'grow' }} className="burano-breaks">
          <Title headingLevel="h1">
            {title} {help && <HelpLink page={help} />}
          </Title>
          {what && <Content component="p">{what}</Content>}
        </FlexItem>
        {children && <FlexItem flex={{ lg: 'flexNone' }}>{children}</FlexItem>}
      </Flex>
    </PageSection>
  );
}
