import {
  Button,
  Dropdown,
  DropdownGroup,
  DropdownItem,
  DropdownList,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadMain,
  MastheadToggle,
  MenuToggle,
  Nav,
  NavGroup,
  NavItem,
  Page,
  PageSection,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
  Toolbar,
  ToolbarContent,
  ToolbarGroup,
  ToolbarItem,
} from '@patternfly/react-core';
import { SearchIcon } from '@patternfly/react-icons';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router';
import { useState } from 'react';

import { Commands } from '../palette/Commands';
import { Notices } from '../notices/Notices';
import { chooseProject, readProjects, signOut, useSession } from '../session/session';
import { languageNames, useLanguage, type Language } from '../text';
import { FirstVisit } from '../welcome/FirstVisit';
import { groups, mayOpen } from './pages';
import { useTheme, type Theme } from './theme';

const mainId = 'main';

/** The frame of every page: where one is, who one is, and where one can go. */
export function Shell() {
  const { text } = useLanguage();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const session = useSession();
  return (
    <Page
      isManagedSidebar
      mainContainerId={mainId}
      skipToContent={<SkipToContent href={`#${mainId}`}>{text.shell.skip}</SkipToContent>}
      masthead={<Head />}
      sidebar={
        <PageSidebar>
          <PageSidebarBody>
            <Nav aria-label={text.shell.navigation}>
              {groups.map((group) => (
                <NavGroup key={group.name(text)} title={group.name(text)}>
                  {group.pages.filter((page) => mayOpen(page, session)).map((page) => (
                    <NavItem key={page.to} isActive={path.startsWith(page.to)}>
                      <Link to={page.to}>{page.name(text)}</Link>
                    </NavItem>
                  ))}
                </NavGroup>
              ))}
            </Nav>
          </PageSidebarBody>
        </PageSidebar>
      }
    >
      {(path === '/catalog' || path === '/environments') && <FirstVisit />}
      <Outlet />
      <Notices />
    </Page>
  );
}

function Head() {
  const { text } = useLanguage();
  return (
    <Masthead>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton isHamburgerButton aria-label={text.shell.openNavigation} />
        </MastheadToggle>
        <MastheadBrand>
          <Link to="/catalog" className="burano-brand">
            <img className="burano-logo" src="/dashboard/icon.svg" alt="" />
            {text.shell.product}
          </Link>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent>
        <Toolbar isStatic>
          <ToolbarContent>
            <ToolbarGroup align={{ default: 'alignEnd' }} columnGap={{ default: 'columnGapNone', md: 'columnGapMd' }}>
              <Commands />
              <ToolbarItem>
                <ProjectMenu />
              </ToolbarItem>
              <ToolbarItem>
                <AccountMenu />
              </ToolbarItem>
            </ToolbarGroup>
          </ToolbarContent>
        </Toolbar>
      </MastheadContent>
    </Masthead>
  );
}

function ProjectMenu() {
  const { text } = useLanguage();
  const session = useSession();
  const [open, setOpen] = useState(false);
  const projects = useQuery({ queryKey: ['projects'], queryFn: readProjects, enabled: open });
  // Everything that is shown belongs to the project: a whole new page is the one safe way to forget it.
  const choose = (id: string) => chooseProject(id).then(() => window.location.assign('/dashboard/'));
  return (
    <Dropdown
      isOpen={open}
      onOpenChange={setOpen}
      onSelect={(_event, id) => void choose(String(id))}
      popperProps={{ position: 'end' }}
      toggle={(ref) => (
        <MenuToggle ref={ref} variant="plainText" isExpanded={open} onClick={() => setOpen(!open)} aria-label={`${text.shell.chooseProject}: ${session.project?.name ?? ''}`}>
          {session.project?.name}
        </MenuToggle>
      )}
    >
      <DropdownList>
        {projects.isPending && <DropdownItem isDisabled>{text.shell.loading}</DropdownItem>}
        {(projects.data ?? []).map((project) => (
          <DropdownItem key={project.id} value={project.id} isSelected={project.id === session.project?.id}>
            {project.name}
          </DropdownItem>
        ))}
      </DropdownList>
    </Dropdown>
  );
}

function AccountMenu() {
  const { text, language, choose } = useLanguage();
  const { theme, choose: chooseTheme } = useTheme();
  const session = useSession();
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const themes: [Theme, string][] = [
    ['light', text.shell.light],
    ['dark', text.shell.dark],
    ['system', text.shell.system],
  ];
  const leave = async () => {
    await signOut();
    client.clear();
    window.location.assign('/dashboard/');
  };
  return (
    <Dropdown
      isOpen={open}
      onOpenChange={setOpen}
      popperProps={{ position: 'end' }}
      toggle={(ref) => (
        <MenuToggle ref={ref} variant="plainText" isExpanded={open} onClick={() => setOpen(!open)} aria-label={text.shell.account(session.user?.name ?? '')}>
          {session.user?.name}
        </MenuToggle>
      )}
    >
      <DropdownGroup label={text.shell.theme}>
        <DropdownList>
          {themes.map(([value, name]) => (
            <DropdownItem key={value} isSelected={theme === value} onClick={() => chooseTheme(value)}>
              {name}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
      <DropdownGroup label={text.shell.language}>
        <DropdownList>
          {(Object.keys(languageNames) as Language[]).map((value) => (
            <DropdownItem key={value} isSelected={language === value} onClick={() => choose(value)}>
              {languageNames[value]}
            </DropdownItem>
          ))}
        </DropdownList>
      </DropdownGroup>
      <DropdownList>
        <DropdownItem key="out" onClick={() => void leave()}>
          {text.shell.signOut}
        </DropdownItem>
      </DropdownList>
    </Dropdown>
  );
}

/** Shown where no page is. */
export function NotFound() {
  const { text } = useLanguage();
  const navigate = useNavigate();
  return (
    <PageSection isFilled>
      <EmptyState titleText={text.shell.notFound} icon={SearchIcon} headingLevel="h1">
        <EmptyStateBody>{text.shell.notFoundWhat}</EmptyStateBody>
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button onClick={() => void navigate({ to: '/catalog' })}>{text.shell.toStart}</Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      </EmptyState>
    </PageSection>
  );
}
