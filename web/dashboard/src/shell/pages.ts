import type { SignedIn } from '../session/session';
import type { FirstTexts } from '../text/en/first';

/** The entries of the navigation, in groups, in their order. */
export const groups = [
  {
    name: (text: FirstTexts) => text.shell.browse,
    pages: [{ to: '/catalog', name: (text: FirstTexts) => text.shell.catalog }],
  },
  {
    name: (text: FirstTexts) => text.shell.applications,
    pages: [
      { to: '/environments', name: (text: FirstTexts) => text.shell.environments },
      { to: '/deployments', name: (text: FirstTexts) => text.shell.deployments },
      { to: '/templates', name: (text: FirstTexts) => text.shell.templates },
    ],
  },
  {
    name: (text: FirstTexts) => text.shell.manage,
    pages: [
      { to: '/packages', name: (text: FirstTexts) => text.shell.packages },
      { to: '/categories', name: (text: FirstTexts) => text.shell.categories },
      { to: '/images', name: (text: FirstTexts) => text.shell.images },
      { to: '/statistics', name: (text: FirstTexts) => text.shell.statistics },
      { to: '/audit', name: (text: FirstTexts) => text.shell.audit, rule: 'list_audit_events' },
      { to: '/quotas', name: (text: FirstTexts) => text.shell.quotas },
      { to: '/doctor', name: (text: FirstTexts) => text.shell.doctor, rule: 'examine_cloud' },
    ],
  },
] as const;

/** Whether the policy lets the user see a page at all. */
export const mayOpen = (page: { to: string; rule?: string }, session: SignedIn): boolean => !page.rule || (session.rules ?? []).includes(page.rule);
