import type { Texts } from '../en';
import { actions } from './actions';
import { catalog } from './catalog';
import { clusters } from './clusters';
import { components } from './components';
import { deployments } from './deployments';
import { environments } from './environments';
import { session } from './session';
import { shell } from './shell';

export const de: Texts = { shell, session, environments, catalog, deployments, components, actions, clusters };
