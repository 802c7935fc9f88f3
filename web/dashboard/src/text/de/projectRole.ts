import type { Texts } from '../en';

export const projectRole: Texts['projectRole'] = {
  title: 'Wie Burano in diesem Projekt arbeitet',
  what: 'Ohne Weiteres arbeitet eine Aufgabe mit einem Trust dessen, der sie startet. Mit einer eigenen Rolle braucht Burano niemanden: Skripte mit Application Credentials deployen, und nichts hängt an jemandem, der geht.',
  works: 'Arbeitet',
  byTrust: 'mit Trusts der Benutzer',
  byRole: 'mit einer eigenen Rolle',
  user: 'Benutzer',
  roles: 'Rollen',
  enabledBy: 'Erlaubt von',
  since: 'Seit',
  problem: 'Aufgaben dieses Projekts schlagen fehl',
  notYours: 'Das ändern Manager des Projekts und Administratoren.',
  enable: 'Rolle erlauben',
  again: 'Rolle zurückgeben',
  enableTitle: 'Burano in diesem Projekt mit einer eigenen Rolle arbeiten lassen?',
  enableWhat: (user, roles) =>
    `Buranos Benutzer ${user} bekommt im Projekt diese Rollen: ${roles}. Aufgaben aller, die deployen dürfen, arbeiten von da an mit ihnen, und Stacks, die dabei entstehen, gehören diesem Benutzer. Ob Sie Rollen vergeben dürfen, entscheidet Keystone.`,
  disable: 'Rolle entziehen',
  disableTitle: 'Burano wieder mit Trusts der Benutzer arbeiten lassen?',
  disableWhat: 'Buranos Benutzer verliert seine Rollen im Projekt. Aufgaben, die mit ihnen arbeiten sollten, schlagen fehl, und Skripte mit Application Credentials können nicht mehr deployen. Neue Aufgaben arbeiten mit Trusts derer, die sie starten.',
};
