import type { Texts } from '../en';
import { catalog } from './catalog';
import { deployments } from './deployments';
import { environments } from './environments';
import { session } from './session';
import { shell } from './shell';

export const de: Texts = { shell, session, environments, catalog, deployments };
