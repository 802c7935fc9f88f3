import type { Texts } from '../text/en';

/** What the navigation leads to, in its order. */
export const pages = [
  { to: '/catalog', name: (text: Texts) => text.shell.catalog },
  { to: '/environments', name: (text: Texts) => text.shell.environments },
  { to: '/deployments', name: (text: Texts) => text.shell.deployments },
] as const;
