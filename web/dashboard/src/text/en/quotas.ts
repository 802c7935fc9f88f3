import { shell } from './shell';

export const quotas = {
  title: shell.quotas,
  what: 'How much a project may have, and has.',
  project: 'Project',
  other: 'Another project, by its id',
  unlimited: (used: string) => `${used}, without limit`,
  used: (used: string, limit: string) => `${used} of ${limit}`,
  ownLimit: 'of its own',
  notYours: 'Administrators change these limits.',
  edit: 'Change limits',
  editWhat: '-1 is no limit. A project keeps what it has when a limit is lowered.',
  save: 'Save',
  reset: 'Back to the settings of the server',
  resources: {
    environments: 'Environments',
    sessions: 'Open drafts',
    templates: 'Templates',
    packages: 'Packages',
    package_bytes: 'Size of packages',
    snapshot_bytes: 'Size of snapshots',
  },
};
