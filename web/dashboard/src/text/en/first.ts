// The texts of every first visit: of the sign-in, of the frame of all pages and of the catalog.
import { catalog } from './catalog';
import { session } from './session';
import { shell } from './shell';
import { welcome } from './welcome';

export const first = { catalog, session, shell, welcome };

export type FirstTexts = typeof first;
