import type { Texts } from '../en';

export const session: Texts['session'] = {
  title: 'Bei Burano anmelden',
  subtitle: 'Anwendungen und Cluster auf OpenStack',
  byPassword: 'Passwort',
  byCredential: 'Application Credential',
  user: 'Benutzer',
  password: 'Passwort',
  domain: 'Domäne',
  project: 'Projekt',
  projectHelp: 'Name oder ID; leer lassen, um danach zu wählen.',
  credential: 'ID des Application Credential',
  secret: 'Geheimnis',
  emptyPassword: 'Geben Sie Benutzer und Passwort ein.',
  emptyCredential: 'Geben Sie die ID und das Geheimnis des Application Credential ein.',
  signIn: 'Anmelden',
  again: 'Ihre Anmeldung ist abgelaufen',
  againWhat: 'Melden Sie sich wieder an, um hier weiterzumachen; auf dieser Seite geht nichts verloren.',
  noProjects: 'Sie haben kein Projekt',
  noProjectsWhat: 'Bitten Sie den Betreiber der Cloud um eine Rolle in einem Projekt.',
  choose: 'Projekt wählen, in dem Sie arbeiten',
  byProvider: (name) => `Weiter mit ${name}`,
};
