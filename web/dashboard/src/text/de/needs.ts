import type { Texts } from '../en';

export const needs: Texts['needs'] = {
  title: 'In diesem Projekt noch nicht bereit',
  image: (type) => (type ? `Es gibt kein Image des Typs ${type}.` : 'Es gibt kein Image für Server.'),
  containerImage: (name) => `Es gibt kein Container-Image ${name}; das Formular nimmt auch ein anderes, auch aus einer Registry.`,
  flavor: (limits) => (limits ? `Es gibt keinen Flavor mit ${limits}.` : 'Es gibt keinen Flavor.'),
  quota: (resource) => `Das Kontingent lässt zu wenig übrig: ${resource}.`,
  mends: (roles) => `Wer das beheben kann: ${roles}.`,
  or: ' oder ',
  roles: { project: 'Mitglieder des Projekts', operator: 'der Betreiber der Cloud' },
};
