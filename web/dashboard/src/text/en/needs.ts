export const needs = {
  title: 'It does not work here yet',
  image: (type: string) => (type ? `There is no image of the type ${type}.` : 'There is no image for servers.'),
  containerImage: (name: string) => `There is no container image ${name}.`,
  flavor: (vcpus: number, memory: string, disk: number) => `There is no flavor with ${vcpus} vCPU, ${memory} of memory and ${disk} GiB of disk.`,
  quota: (resource: string) => `The quota is used up: ${resource}.`,
  mends: (roles: string) => `To be mended by: ${roles}.`,
  or: ' or ',
  roles: { project: 'members of the project', operator: 'the operator of the cloud' },
};
