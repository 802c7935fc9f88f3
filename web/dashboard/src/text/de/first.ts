import type { FirstTexts } from '../en/first';
import { catalog } from './catalog';
import { session } from './session';
import { shell } from './shell';
import { welcome } from './welcome';

export const first: FirstTexts = { catalog, session, shell, welcome };
