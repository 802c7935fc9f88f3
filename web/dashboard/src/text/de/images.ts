import type { Texts } from '../en';
import { shell } from './shell';

export const images: Texts['images'] = {
  title: shell.images,
  what: 'Images der Cloud, von denen Anwendungen ihre Server starten. Formulare finden die, die mit ihrem Zweck markiert sind.',
  name: 'Name',
  titleOf: 'Titel',
  type: 'Art',
  size: 'Größe',
  least: 'Braucht mindestens',
  leastOf: (disk, ram) => [disk > 0 && `${disk} GiB Platte`, ram > 0 && `${ram} MiB Speicher`].filter(Boolean).join(', '),
  notMarked: 'Nicht markiert',
  none: 'Dieses Projekt sieht keine Images',
  noneWhat: 'Bitten Sie den Betreiber der Cloud um eines, oder laden Sie mit openstack image create ein eigenes hoch.',
  mark: 'Ein Image markieren',
  markWhat: 'Wer das Image ändern darf, ruft diesen Befehl auf. Die Markierung steht dann hier.',
  image: 'Image',
  someImage: 'IMAGE',
  command: 'Befehl',
  unmark: 'Um die Markierung zu entfernen',
  markIt: 'Kennzeichnen',
  unmarkIt: 'Kennzeichen entfernen',
  markOf: (name) => `Das Image ${name} kennzeichnen`,
  unmarkOf: (name) => `Kennzeichen entfernen: ${name}`,
  copy: 'Kopieren',
  copied: 'Kopiert',
};
