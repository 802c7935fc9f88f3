// Each part of the dashboard has a file of texts of its own.
import { actions } from './actions';
import { audit } from './audit';
import { categories } from './categories';
import { clusters } from './clusters';
import { compare } from './compare';
import { components } from './components';
import { delegation } from './delegation';
import { deployments } from './deployments';
import { details } from './details';
import { doctor } from './doctor';
import { draft } from './draft';
import { environments } from './environments';
import { findings } from './findings';
import { first } from './first';
import { help } from './help';
import { images } from './images';
import { kubeconfig } from './kubeconfig';
import { needs } from './needs';
import { notices } from './notices';
import { packages } from './packages';
import { palette } from './palette';
import { past } from './past';
import { projectRole } from './projectRole';
import { quotas } from './quotas';
import { running } from './running';
import { certificates, snapshots } from './snapshots';
import { statistics } from './statistics';
import { templates } from './templates';
import { topology } from './topology';
import { upgrades } from './upgrades';
import { wizard } from './wizard';

export const en = {
  ...first,
  actions,
  audit,
  categories,
  certificates,
  clusters,
  compare,
  components,
  delegation,
  deployments,
  details,
  doctor,
  draft,
  environments,
  findings,
  help,
  images,
  kubeconfig,
  needs,
  notices,
  packages,
  palette,
  past,
  projectRole,
  quotas,
  running,
  snapshots,
  statistics,
  templates,
  topology,
  upgrades,
  wizard,
};

/** The shape of all texts: words, and functions of what stands in them. */
export type Texts = typeof en;
