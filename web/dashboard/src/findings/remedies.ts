// Where the remedies of findings lead.
import { linkOptions } from '@tanstack/react-router';

import type { Finding } from './findings';

export type Remedy = Finding['remedies'][number];

/** The page with the command of a remedy; null where there is none, or the command is not Burano's. */
export function linkOf(remedy: Remedy, finding: Finding) {
  const environment = finding.environment_id;
  const object = finding.object_id ?? '';
  const page = (tab?: 'access' | 'history') => linkOptions({ to: '/environments/$environment', params: { environment }, search: { tab } });
  const cluster = (tab?: 'running' | 'protection') =>
    object ? linkOptions({ to: '/environments/$environment/clusters/$object', params: { environment, object }, search: { tab } }) : null;
  switch (remedy.kind) {
    case 'set-delegation':
      return page('access');
    case 'deploy-again':
    case 'wake':
      return page();
    case 'look-at-deployments':
      return page('history');
    case 'unlock-node':
    case 'reboot-node':
    case 'replace-node':
    case 'start-node':
    case 'scale':
      return cluster();
    case 'make-room':
      return cluster('running');
    case 'correct-application':
      return object ? linkOptions({ to: '/environments/$environment/components/$object', params: { environment, object }, search: { edit: true } }) : null;
    case 'rotate-certificates':
    case 'delete-snapshots':
      return cluster('protection');
    default:
      return null;
  }
}
