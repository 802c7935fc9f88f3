import type { Texts } from '../en';

export const welcome: Texts['welcome'] = {
  title: 'Wie man anfängt',
  close: 'Das nicht mehr zeigen',
  package: 'Ein Paket ist ein Zip-Archiv, das eine Anwendung in den Katalog bringt. Einige kommen mit Burano; importieren Sie eigene.',
  toPackages: 'Zu den Paketen',
  environment: 'Eine Umgebung enthält Anwendungen, die zusammen deployt werden. Legen Sie Ihre erste an.',
  toEnvironments: 'Zu den Umgebungen',
  application: 'Wählen Sie eine Anwendung, und fügen Sie sie der Umgebung hinzu.',
  toCatalog: 'Zum Katalog',
  deploy: 'Deployen Sie, und sehen Sie zu, was geschieht.',
  toHelp: 'Mehr lesen',
};
