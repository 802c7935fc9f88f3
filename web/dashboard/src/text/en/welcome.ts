export const welcome = {
  title: 'How to begin',
  close: 'Do not show this again',
  package: 'A package is a zip archive that brings an application into the catalog. Some come with Burano; import your own.',
  toPackages: 'To the packages',
  environment: 'An environment holds applications that are deployed together. Create your first.',
  toEnvironments: 'To the environments',
  application: 'Choose an application and add it to the environment.',
  toCatalog: 'To the catalog',
  deploy: 'Deploy, and watch what happens.',
  toHelp: 'Read more',
};
