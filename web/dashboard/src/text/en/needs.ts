export const needs = {
  title: 'Not ready in this project yet',
  image: (type: string) => (type ? `There is no image of the type ${type}.` : 'There is no image for servers.'),
  containerImage: (name: string) => `There is no container image ${name}; the form accepts another one, also of a registry.`,
  flavor: (limits: string) => (limits ? `There is no flavor with ${limits}.` : 'There is no flavor.'),
  quota: (resource: string) => `The quota leaves too little: ${resource}.`,
  mends: (roles: string) => `Who can mend it: ${roles}.`,
  or: ' or ',
  roles: { project: 'members of the project', operator: 'the operator of the cloud' },
};
