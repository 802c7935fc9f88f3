import type { Texts } from '../en';

export const needs: Texts['needs'] = {
  title: 'Läuft hier noch nicht',
  image: (type) => (type ? `Es gibt kein Image des Typs ${type}.` : 'Es gibt kein Image für Server.'),
  containerImage: (name) => `Es gibt kein Container-Image ${name}.`,
  flavor: (vcpus, memory, disk) => `Es gibt keinen Flavor mit ${vcpus} vCPU, ${memory} Speicher und ${disk} GiB Platte.`,
  quota: (resource) => `Das Kontingent ist ausgeschöpft: ${resource}.`,
  mends: (roles) => `Beheben können es: ${roles}.`,
  or: ' oder ',
  roles: { project: 'Mitglieder des Projekts', operator: 'der Betreiber der Cloud' },
};
