import { Button, Content, EmptyState, EmptyStateBody, Grid, GridItem, Nav, NavGroup, NavItem, PageSection, SearchInput } from '@patternfly/react-core';
import { SearchIcon } from '@patternfly/react-icons';
import { Link, useNavigate, useParams, useRouterState, useSearch } from '@tanstack/react-router';
import { useEffect } from 'react';

import { Heading } from '../shell/Heading';
import { useText } from '../text';
import { chapters, documents, find, type Chapter, type Found } from './documents';
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
    if (hash) document.getElementById(hash)?.scrollIntoView();
  }, [hash, page]);
  const look = (text: string) => void navigate({ to: '.', search: { search: text || undefined }, replace: true });
  return (
    <>
      <Heading title={search ? words.title : (shown?.title ?? words.title)} />
      <PageSection isFilled>
        <Grid hasGutter>
          <GridItem span={12} lg={3} order={{ default: "1", lg: "0" }}>
            <SearchInput aria-label={words.search} placeholder={words.search} value={search} onChange={(_event, value) => look(value)} onClear={() => look('')} />
            <Nav aria-label={words.pages}>
              {(Object.keys(chapters) as Chapter[]).map((chapter) => (
                <NavGroup key={chapter} title={words.chapters[chapter]}>
                  {documents
                    .filter((document) => chapters[chapter].includes(document.name))
                    .map((document) => (
                      <NavItem key={document.name} isActive={document.name === page}>
                        <Link to="/help/$page" params={{ page: document.name }}>
                          {document.title}
                        </Link>
                      </NavItem>
                    ))}
                </NavGroup>
              ))}
            </Nav>
          </GridItem>
          <GridItem span={12} lg={9} order={{ default: "0", lg: "1" }} className="burano-breaks">
            {search ? <Results found={find(documents, search)} /> : shown ? <Markdown>{shown.text}</Markdown> : <Gone />}
          </GridItem>
        </Grid>
      </PageSection>
    </>
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
      <Button variant="link" onClick={() => void navigate({ to: '/help/$page', params: { page: 'catalog' } })}>
        {words.toCatalog}
      </Button>
    </EmptyState>
  );
}
