// Each part of the dashboard has a file of texts of its own.
import { actions } from './actions';
import { catalog } from './catalog';
import { clusters } from './clusters';
import { components } from './components';
import { deployments } from './deployments';
import { environments } from './environments';
import { session } from './session';
import { shell } from './shell';

export const en = { shell, session, environments, catalog, deployments, components, actions, clusters };

/** The shape of all texts: words, and functions of what stands in them. */
export type Texts = typeof en;
