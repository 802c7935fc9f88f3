// The network of an environment's servers.
import type { NetworkValue } from '../wizard/cloud';

/** The networks of a new environment whose servers are in an existing network. */
export const defaultNetworks = ([network, subnet]: NetworkValue): Record<string, unknown> => ({
  environment: {
    '?': { id: newId(), type: 'io.murano.resources.ExistingNeutronNetwork' },
    internalNetworkName: network,
    internalSubnetworkName: subnet,
  },
  flat: null,
});

/** The networks of a new environment whose own, new network has addresses of IPv6 beside IPv4. */
export const dualStackNetworks = (environment: string, ipv6Cidr: string): Record<string, unknown> => ({
  environment: {
    '?': { id: newId(), type: 'io.murano.resources.CustomNeutronNetwork' },
    name: `${environment}-network`,
    ipv6Cidr,
  },
  flat: null,
});

/** A /64 of IPv6, as the networks of environments have it. */
export const isIPv6Range = (text: string): boolean => /^[0-9a-f:]*:[0-9a-f:]*\/64$/i.test(text);

/** An id as objects have them. Browsers make UUIDs only over HTTPS. */
const newId = (): string => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
