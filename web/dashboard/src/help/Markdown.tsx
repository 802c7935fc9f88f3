import { Content, CodeBlock, CodeBlockCode } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { Link } from '@tanstack/react-router';
import { isValidElement, type ReactNode } from 'react';
import Renderer, { type Components } from 'react-markdown';
import gfm from 'remark-gfm';

import { anchorOf, targetOf } from './documents';

/** The plain text of the rendered nodes. */
const textOf = (node: ReactNode): string => {
  if (typeof node === 'string' || typeof node === 'number') return String(node);
  if (Array.isArray(node)) return node.map(textOf).join('');
  return isValidElement<{ children?: ReactNode }>(node) ? textOf(node.props.children) : '';
};

const headline = (component: 'h2' | 'h3' | 'h4') =>
  function Headline({ children }: { children?: ReactNode }) {
    return (
      <Content component={component} id={anchorOf(textOf(children))} tabIndex={-1}>
        {children}
      </Content>
    );
  };

const components: Components = {
  h1: headline('h2'),
  h2: headline('h2'),
  h3: headline('h3'),
  h4: headline('h4'),
  a: ({ href = '', children }) => <Reference href={href}>{children}</Reference>,
  pre: ({ children }) => (
    <CodeBlock className="burano-spaced">
      <CodeBlockCode>{textOf(children).trimEnd()}</CodeBlockCode>
    </CodeBlock>
  ),
  code: ({ children }) => <code className="burano-code">{children}</code>,
  img: ({ alt }) => <>{alt}</>,
  table: ({ children }) => (
    <div className="burano-wide">
      <Table variant="compact" gridBreakPoint="">
        {children}
      </Table>
    </div>
  ),
  thead: ({ children }) => <Thead>{children}</Thead>,
  tbody: ({ children }) => <Tbody>{children}</Tbody>,
  tr: ({ children }) => <Tr>{children}</Tr>,
  th: ({ children }) => <Th modifier="wrap">{children}</Th>,
  td: ({ children }) => <Td>{children}</Td>,
};

/** Shows Markdown of the project's documents; HTML in it is shown as text. */
export function Markdown({ children }: { children: string }) {
  return (
    <Content>
      <Renderer remarkPlugins={[gfm]} components={components}>
        {children}
      </Renderer>
    </Content>
  );
}

function Reference({ href, children }: { href: string; children: ReactNode }) {
  const target = targetOf(href);
  switch (target.kind) {
    case 'page':
      return (
        <Link to="/help/$page" params={{ page: target.page }} hash={target.section}>
          {children}
        </Link>
      );
    case 'section':
      return (
        <Link to="." hash={target.section}>
          {children}
        </Link>
      );
    case 'outside':
      return (
        <a href={target.href} target="_blank" rel="noreferrer">
          {children}
        </a>
      );
    case 'file':
      return <span title={target.path}>{children}</span>;
  }
}
