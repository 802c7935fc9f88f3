import type { Texts } from '../en';

export const notices: Texts['notices'] = {
  title: 'Benachrichtigungen',
  ended: (state) => `Beendet: ${state}`,
  show: 'Protokoll zeigen',
};
