import { Content, Flex, FlexItem, PageSection, Title } from '@patternfly/react-core';
import type { ReactNode } from 'react';

import { HelpLink } from '../help/HelpLink';

interface Props {
  title: string;
  /** What the page is for. */
  what?: string;
  /** The document that explains it. */
  help?: string;
  children?: ReactNode;
}

/** The head of a page: its title, what it is for, and what can be done with it as a whole. */
export function Heading({ title, what, help, children }: Props) {
  return (
    <PageSection>
      <Flex>
        <FlexItem grow={{ default: 'grow' }} className="burano-breaks">
          <Title headingLevel="h1">
            {title} {help && <HelpLink page={help} />}
          </Title>
        </FlexItem>
        {children && <FlexItem>{children}</FlexItem>}
      </Flex>
      {what && <Content component="p">{what}</Content>}
    </PageSection>
  );
}
