import {
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadMain,
  MastheadToggle,
  Nav,
  NavGroup,
  NavItem,
  Page,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
  Toolbar,
  ToolbarContent,
  ToolbarGroup,
  ToolbarItem,
} from '@patternfly/react-core';
import { FolderIcon, UserIcon } from '@patternfly/react-icons';
import { Link, Outlet, useRouterState } from '@tanstack/react-router';
import { lazy } from 'react';

import { Commands } from '../palette/Commands';
import { Notices } from '../notices/Notices';
import { RegionMenu } from '../regions/RegionMenu';
import { useSession } from '../session/session';
import { useFirstText } from '../text';
import { FirstVisit } from '../welcome/FirstVisit';
import { LateMenu } from './LateMenu';
import { groups, mayOpen } from './pages';
import { useTabTitle } from './useTabTitle';

const Projects = lazy(() => import('./Menus').then(({ Projects }) => ({ default: Projects })));
const Account = lazy(() => import('./Menus').then(({ Account }) => ({ default: Account })));

const mainId = 'main';

/** The frame of every page: the present place, the user, and the navigation. */
export function Shell() {
  const text = useFirstText();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const session = useSession();
  useTabTitle(text.shell.product);
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
  const text = useFirstText();
  return (
    <Masthead display={{ default: 'inline' }}>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton isHamburgerButton aria-label={text.shell.openNavigation} />
        </MastheadToggle>
        <MastheadBrand>
          <Link to="/catalog" className="burano-brand" aria-label={text.shell.product}>
            <img className="burano-logo" src="/dashboard/icon.svg" alt="" />
            <span className="burano-wide-only">{text.shell.product}</span>
          </Link>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent>
        <Toolbar isStatic>
          <ToolbarContent>
            <ToolbarGroup align={{ default: 'alignEnd' }} columnGap={{ default: 'columnGapNone', md: 'columnGapMd' }}>
              <Commands />
              <RegionMenu />
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
  const text = useFirstText();
  const { project } = useSession();
  return <LateMenu menu={Projects} label={`${text.shell.chooseProject}: ${project?.name ?? ''}`} icon={<FolderIcon />} shown={<span className="burano-wide-only">{project?.name}</span>} />;
}

function AccountMenu() {
  const text = useFirstText();
  const { user } = useSession();
  return <LateMenu menu={Account} label={text.shell.account(user?.name ?? '')} icon={<UserIcon />} shown={<span className="burano-wide-only">{user?.name}</span>} />;
}
