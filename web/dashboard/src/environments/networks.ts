// The network of an environment's servers.
import type { NetworkValue } from '../wizard/cloud';

/** What an environment is created with whose servers stand in a network that is there already. */
export const defaultNetworks = ([network, subnet]: NetworkValue): Record<string, unknown> => ({
  environment: {
    '?': { id: newId(), type: 'io.murano.resources.ExistingNeutronNetwork' },
    internalNetworkName: network,
    internalSubnetworkName: subnet,
  },
  flat: null,
});

/** An id as objects have them. Browsers make UUIDs only over HTTPS. */
const newId = (): string => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
