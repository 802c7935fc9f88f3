import type { Texts } from '../en';

export const findings: Texts['findings'] = {
  title: 'Befunde',
  count: (count) => (count === 1 ? '1 Befund' : `${count} Befunde`),
  since: (age) => `Festgestellt ${age}`,
  repairs: (count) => (count === 1 ? '1 Reparatur wurde begonnen' : `${count} Reparaturen wurden begonnen`),
  lastRepair: 'Letzte Reparatur',
};
