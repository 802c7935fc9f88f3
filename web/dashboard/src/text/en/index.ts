// Each part of the dashboard has a file of texts of its own.
import { catalog } from './catalog';
import { deployments } from './deployments';
import { environments } from './environments';
import { session } from './session';
import { shell } from './shell';

export const en = { shell, session, environments, catalog, deployments };

/** The shape of all texts: words, and functions of what stands in them. */
export type Texts = typeof en;
