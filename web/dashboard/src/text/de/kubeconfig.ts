import type { Texts } from '../en';

export const kubeconfig: Texts['kubeconfig'] = {
  saved: 'Die Kubeconfig ist gespeichert.',
  signIn: 'Anmeldung',
  certificate: 'Mit einem Zertifikat',
  certificateWhat: 'Wer die Datei hat, hat die Rechte, solange das Zertifikat gilt.',
  keystone: 'Jedes Mal durch Keystone',
  keystoneWhat: 'Die Datei enthält kein Geheimnis. kubectl ruft das Programm burano auf, das OS_*-Variablen oder clouds.yaml benutzt; Ihre Rollen sagen, was Sie dürfen.',
  group: 'Rechte',
  groups: { 'burano:admins': 'Alle', 'burano:editors': 'Ändern, was läuft', 'burano:readers': 'Lesen, aber keine Secrets' },
  lifetime: 'Gültig für',
  lifetimes: { '1h': '1 Stunde', '8h': '8 Stunden', '24h': '24 Stunden' },
  namespace: 'Namespace',
  namespaceWhat: 'Wo kubectl sucht, wenn kein anderer genannt ist. Er begrenzt nichts.',
  download: 'Herunterladen',
};
