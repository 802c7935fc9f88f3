import type { SignedIn } from '../session/session';
import type { Texts } from '../text/en';

/** What the navigation leads to, in groups, in its order. */
export const groups = [
  {
    name: (text: Texts) => text.shell.browse,
    pages: [{ to: '/catalog', name: (text: Texts) => text.shell.catalog }],
  },
  {
    name: (text: Texts) => text.shell.applications,
    pages: [
      { to: '/environments', name: (text: Texts) => text.shell.environments },
      { to: '/deployments', name: (text: Texts) => text.shell.deployments },
      { to: '/templates', name: (text: Texts) => text.templates.title },
    ],
  },
  {
    name: (text: Texts) => text.shell.manage,
    pages: [
      { to: '/packages', name: (text: Texts) => text.packages.title },
      { to: '/categories', name: (text: Texts) => text.categories.title },
      { to: '/images', name: (text: Texts) => text.images.title },
      { to: '/statistics', name: (text: Texts) => text.statistics.title },
      { to: '/audit', name: (text: Texts) => text.audit.title, rule: 'list_audit_events' },
      { to: '/quotas', name: (text: Texts) => text.quotas.title },
    ],
  },
] as const;

/** Whether the policy lets somebody see a page at all. */
export const mayOpen = (page: { to: string; rule?: string }, session: SignedIn): boolean => !page.rule || (session.rules ?? []).includes(page.rule);
