import { Button, Content, EmptyState, EmptyStateBody, ExpandableSection, Flex, FlexItem, Grid, GridItem, Nav, NavGroup, NavItem, NavList, PageSection, SearchInput } from '@patternfly/react-core';
import { SearchIcon } from '@patternfly/react-icons';
import { Link, useNavigate, useParams, useRouterState, useSearch } from '@tanstack/react-router';
import { useEffect } from 'react';

import { Heading } from '../shell/Heading';
import { useText } from '../text';
import { contents, documents, find, headlinesOf, movedTo, parts, type Document, type Found } from './documents';
import { Markdown } from './Markdown';

/** The project's documents, with a search over all of them. */
export function HelpPage() {
  const words = useText().help;
  const navigate = useNavigate();
  const { page } = useParams({ from: '/help/$page' });
  const { search = '' } = useSearch({ from: '/help/$page' });
  const hash = useRouterState({ select: (state) => state.location.hash });
  const shown = documents.find((document) => document.name === page);
  useEffect(() => {
    const now = movedTo(page, hash);
    if (now) void navigate({ to: '/help/$page', params: { page: now.page }, hash: now.section, replace: true });
    else if (hash) document.getElementById(hash)?.scrollIntoView();
  }, [hash, page, navigate]);
  const look = (text: string) => void navigate({ to: '.', search: { search: text || undefined }, replace: true });
  return (
    <>
      <Heading title={search ? words.title : (shown?.title ?? words.title)} />
      <PageSection isFilled>
        <Grid hasGutter>
          <GridItem span={12} lg={3} order={{ default: "1", lg: "0" }}>
            <SearchInput aria-label={words.search} placeholder={words.search} value={search} onChange={(_event, value) => look(value)} onClear={() => look('')} />
            <Nav aria-label={words.pages}>
              <NavList>
                <Chapter name={contents} shown={page} />
              </NavList>
              {parts.map((part) => (
                <NavGroup key={part.reader} title={words.readers[part.reader]}>
                  {part.chapters.map((name) => (
                    <Chapter key={name} name={name} shown={page} />
                  ))}
                </NavGroup>
              ))}
            </Nav>
          </GridItem>
          <GridItem span={12} lg={9} order={{ default: "0", lg: "1" }} className="burano-breaks">
            {search ? <Results found={find(documents, search)} /> : shown ? (
              <>
                <Sections of={shown} key={shown.name} />
                <Markdown>{shown.text}</Markdown>
                <Neighbours of={shown} />
              </>
            ) : (
              <Gone />
            )}
          </GridItem>
        </Grid>
      </PageSection>
    </>
  );
}

function Chapter({ name, shown }: { name: string; shown: string }) {
  return (
    <NavItem isActive={name === shown}>
      <Link to="/help/$page" params={{ page: name }}>
        {documents.find((document) => document.name === name)?.title}
      </Link>
    </NavItem>
  );
}

/** The headlines of a chapter, where it has some; the smallest ones of long chapters are left out. */
function Sections({ of }: { of: Document }) {
  const words = useText().help;
  const all = headlinesOf(of);
  const headlines = all.length > 40 ? all.filter((headline) => headline.level === 2) : all;
  if (headlines.length < 2 || of.name === contents) return null;
  return (
    <ExpandableSection toggleText={words.sections} isIndented className="burano-spaced">
      <Content component="ul" isPlainList aria-label={words.sections}>
        {headlines.map((headline) => (
          <Content component="li" key={headline.section} className={headline.level > 2 ? 'burano-below' : undefined}>
            <Link to="." hash={headline.section}>
              {headline.text}
            </Link>
          </Content>
        ))}
      </Content>
    </ExpandableSection>
  );
}

/** Leads to the chapters before and behind one. */
function Neighbours({ of }: { of: Document }) {
  const words = useText().help;
  const i = documents.indexOf(of);
  const lead = (document: Document | undefined, text: (title: string) => string) =>
    document && (
      <FlexItem>
        <Link to="/help/$page" params={{ page: document.name }}>
          {text(document.title)}
        </Link>
      </FlexItem>
    );
  return (
    <Flex component="nav" aria-label={words.neighbours} justifyContent={{ default: 'justifyContentSpaceBetween' }} className="burano-spaced">
      {lead(documents[i - 1], words.before)}
      {lead(documents[i + 1], words.next)}
    </Flex>
  );
}

function Results({ found }: { found: Found[] }) {
  const words = useText().help;
  if (found.length === 0) return <EmptyState titleText={words.nothing} icon={SearchIcon} headingLevel="h2" variant="sm" />;
  return (
    <Content>
      {found.map((one, i) => (
        <Content component="p" key={i}>
          <Link to="/help/$page" params={{ page: one.document.name }} hash={one.section || undefined}>
            {one.headline === one.document.title ? one.headline : words.below(one.document.title, one.headline)}
          </Link>
          <br />
          {one.line}
        </Content>
      ))}
    </Content>
  );
}

function Gone() {
  const words = useText().help;
  const navigate = useNavigate();
  return (
    <EmptyState titleText={words.gone} headingLevel="h2" variant="sm">
      <EmptyStateBody>{words.goneWhat}</EmptyStateBody>
      <Button variant="link" onClick={() => void navigate({ to: '/help/$page', params: { page: contents } })}>
        {words.toContents}
      </Button>
    </EmptyState>
  );
}
