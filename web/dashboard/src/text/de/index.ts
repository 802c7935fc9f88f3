import type { Texts } from '../en';
import { actions } from './actions';
import { audit } from './audit';
import { catalog } from './catalog';
import { categories } from './categories';
import { clusters } from './clusters';
import { compare } from './compare';
import { components } from './components';
import { delegation } from './delegation';
import { deployments } from './deployments';
import { details } from './details';
import { draft } from './draft';
import { environments } from './environments';
import { findings } from './findings';
import { help } from './help';
import { images } from './images';
import { notices } from './notices';
import { packages } from './packages';
import { palette } from './palette';
import { quotas } from './quotas';
import { running } from './running';
import { session } from './session';
import { shell } from './shell';
import { certificates, snapshots } from './snapshots';
import { statistics } from './statistics';
import { templates } from './templates';
import { topology } from './topology';
import { welcome } from './welcome';
import { wizard } from './wizard';

export const de: Texts = {
  actions,
  audit,
  catalog,
  categories,
  certificates,
  clusters,
  compare,
  components,
  delegation,
  deployments,
  details,
  draft,
  environments,
  findings,
  help,
  images,
  notices,
  packages,
  palette,
  quotas,
  running,
  session,
  shell,
  snapshots,
  statistics,
  templates,
  topology,
  welcome,
  wizard,
};
