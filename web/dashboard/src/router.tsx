// All pages and their addresses; each page is loaded when it is first gone to.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router';

import { readLook as readAuditLook } from './audit/look';
import { CatalogPage } from './catalog/CatalogPage';
import { readLook as readClusterLook } from './clusters/look';
import { componentTabs, type ComponentTab } from './components/tabs';
import { tabs, type EnvironmentTab } from './environments/tabs';
import { readLook } from './packages/look';
import { Crash } from './shell/Crash';
import { Shell } from './shell/Shell';
import { whose, type Whose } from './templates/whose';
import { loadTexts } from './text';

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

const root = createRootRoute({
  component: Shell,
  // The catalog needs the first texts only. A page whose texts do not load requests them again, and shows this.
  beforeLoad: async ({ location }) => {
    if (!['/', '/catalog'].includes(location.pathname)) await loadTexts().catch(() => undefined);
  },
  notFoundComponent: lazyRouteComponent(() => import('./shell/NotFound'), 'NotFound'),
});

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
  validateSearch: (search): { search?: string; category?: string; environment?: string } => ({
    search: textOf(search.search),
    category: textOf(search.category),
    environment: textOf(search.environment),
  }),
  component: CatalogPage, // the first page: it comes with the frame
});

const application = createRoute({
  getParentRoute: () => root,
  path: '/catalog/$package',
  validateSearch: (search): { environment?: string } => ({ environment: textOf(search.environment) }),
  component: lazyRouteComponent(() => import('./catalog/PackagePage'), 'PackagePage'),
});

const environments = createRoute({
  getParentRoute: () => root,
  path: '/environments',
  component: lazyRouteComponent(() => import('./environments/EnvironmentsPage'), 'EnvironmentsPage'),
});

const allEnvironments = createRoute({
  getParentRoute: () => root,
  path: '/environments/all',
  validateSearch: (search): { project?: string } => ({ project: textOf(search.project) }),
  component: lazyRouteComponent(() => import('./environments/AllEnvironmentsPage'), 'AllEnvironmentsPage'),
});

const environment = createRoute({
  getParentRoute: () => root,
  path: '/environments/$environment',
  validateSearch: (search): { tab?: EnvironmentTab } => ({ tab: tabs.find((tab) => tab === search.tab) }),
  component: lazyRouteComponent(() => import('./environments/EnvironmentPage'), 'EnvironmentPage'),
});

const component = createRoute({
  getParentRoute: () => root,
  path: '/environments/$environment/components/$object',
  validateSearch: (search): { tab?: ComponentTab; edit?: true } => ({
    tab: componentTabs.find((tab) => tab === search.tab),
    edit: search.edit ? true : undefined,
  }),
  component: lazyRouteComponent(() => import('./components/ComponentPage'), 'ComponentPage'),
});

const cluster = createRoute({
  getParentRoute: () => root,
  path: '/environments/$environment/clusters/$object',
  validateSearch: readClusterLook,
  component: lazyRouteComponent(() => import('./clusters/ClusterPage'), 'ClusterPage'),
});

const pod = createRoute({
  getParentRoute: () => root,
  path: '/environments/$environment/clusters/$object/pods/$namespace/$pod',
  validateSearch: (search): { container?: string } => ({ container: textOf(search.container) }),
  component: lazyRouteComponent(() => import('./clusters/PodPage'), 'PodPage'),
});

const workload = createRoute({
  getParentRoute: () => root,
  path: '/environments/$environment/clusters/$object/workloads/$namespace/$kind/$workload',
  component: lazyRouteComponent(() => import('./clusters/WorkloadPage'), 'WorkloadPage'),
});

const add = createRoute({
  getParentRoute: () => root,
  path: '/environments/$environment/add/$package',
  validateSearch: (search): { step?: number; deploy?: true; quick?: true } => ({
    step: Number(search.step) >= 1 ? Math.trunc(Number(search.step)) : undefined,
    deploy: search.deploy ? true : undefined,
    quick: search.quick ? true : undefined,
  }),
  component: lazyRouteComponent(() => import('./wizard/AddPage'), 'AddPage'),
});

const deployment = createRoute({
  getParentRoute: () => root,
  path: '/environments/$environment/deployments/$deployment',
  component: lazyRouteComponent(() => import('./deployments/DeploymentPage'), 'DeploymentPage'),
});

const compare = createRoute({
  getParentRoute: () => root,
  path: '/environments/$environment/compare',
  validateSearch: (search): { before?: string; after?: string } => ({ before: textOf(search.before), after: textOf(search.after) }),
  component: lazyRouteComponent(() => import('./deployments/ComparePage'), 'ComparePage'),
});

const deployments = createRoute({
  getParentRoute: () => root,
  path: '/deployments',
  component: lazyRouteComponent(() => import('./deployments/DeploymentsPage'), 'DeploymentsPage'),
});

const packages = createRoute({
  getParentRoute: () => root,
  path: '/packages',
  validateSearch: readLook,
  component: lazyRouteComponent(() => import('./packages/PackagesPage'), 'PackagesPage'),
});

const comparePackages = createRoute({
  getParentRoute: () => root,
  path: '/packages/compare',
  validateSearch: (search): { ids?: string; fqn?: string } => ({ ids: textOf(search.ids), fqn: textOf(search.fqn) }),
  component: lazyRouteComponent(() => import('./packages/ComparePage'), 'ComparePage'),
});

const categories = createRoute({
  getParentRoute: () => root,
  path: '/categories',
  component: lazyRouteComponent(() => import('./categories/CategoriesPage'), 'CategoriesPage'),
});

const images = createRoute({
  getParentRoute: () => root,
  path: '/images',
  component: lazyRouteComponent(() => import('./images/ImagesPage'), 'ImagesPage'),
});

const help = createRoute({
  getParentRoute: () => root,
  path: '/help/$page',
  validateSearch: (search): { search?: string } => ({ search: textOf(search.search) }),
  component: lazyRouteComponent(() => import('./help/HelpPage'), 'HelpPage'),
});

const templates = createRoute({
  getParentRoute: () => root,
  path: '/templates',
  validateSearch: (search): { whose?: Whose } => ({ whose: whose.find((one) => one === search.whose) }),
  component: lazyRouteComponent(() => import('./templates/TemplatesPage'), 'TemplatesPage'),
});

const template = createRoute({
  getParentRoute: () => root,
  path: '/templates/$template',
  component: lazyRouteComponent(() => import('./templates/TemplatePage'), 'TemplatePage'),
});

const statistics = createRoute({
  getParentRoute: () => root,
  path: '/statistics',
  validateSearch: (search): { environment?: string } => ({ environment: textOf(search.environment) }),
  component: lazyRouteComponent(() => import('./statistics/StatisticsPage'), 'StatisticsPage'),
});

const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: readAuditLook,
  component: lazyRouteComponent(() => import('./audit/AuditPage'), 'AuditPage'),
});

const quotas = createRoute({
  getParentRoute: () => root,
  path: '/quotas',
  validateSearch: (search): { project?: string } => ({ project: textOf(search.project) }),
  component: lazyRouteComponent(() => import('./quotas/QuotasPage'), 'QuotasPage'),
});

const doctor = createRoute({
  getParentRoute: () => root,
  path: '/doctor',
  component: lazyRouteComponent(() => import('./doctor/DoctorPage'), 'DoctorPage'),
});

const managed = [packages, comparePackages, categories, images, templates, template, statistics, audit, quotas, doctor, help];

export const router = createRouter({
  routeTree: root.addChildren([start, catalog, application, environments, allEnvironments, environment, add, component, cluster, pod, workload, deployment, compare, deployments, ...managed]),
  basepath: '/dashboard',
  defaultPreload: 'intent',
  defaultErrorComponent: Crash,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
