// All pages and their addresses; each page is loaded when it is first gone to.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router';

import { NotFound, Shell } from './shell/Shell';

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

const start = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/catalog' });
  },
});

const catalog = createRoute({
  getParentRoute: () => root,
  path: '/catalog',
  component: lazyRouteComponent(() => import('./catalog/CatalogPage'), 'CatalogPage'),
});

const environments = createRoute({
  getParentRoute: () => root,
  path: '/environments',
  component: lazyRouteComponent(() => import('./environments/EnvironmentsPage'), 'EnvironmentsPage'),
});

const deployments = createRoute({
  getParentRoute: () => root,
  path: '/deployments',
  component: lazyRouteComponent(() => import('./deployments/DeploymentsPage'), 'DeploymentsPage'),
});

export const router = createRouter({
  routeTree: root.addChildren([start, catalog, environments, deployments]),
  basepath: '/dashboard',
  defaultPreload: 'intent',
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
