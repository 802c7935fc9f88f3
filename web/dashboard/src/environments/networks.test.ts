import { expect, it } from 'vitest';

import { defaultNetworks, dualStackNetworks, isIPv6Range } from './networks';

it('has the servers of an environment stand in a network that is there', () => {
  expect(defaultNetworks(['n1', 's1'])).toEqual({
    environment: {
      '?': { id: expect.stringMatching(/^[0-9a-f]{32}$/) as string, type: 'io.murano.resources.ExistingNeutronNetwork' },
      internalNetworkName: 'n1',
      internalSubnetworkName: 's1',
    },
    flat: null,
  });
});

it('gives the network of an environment a range of IPv6', () => {
  expect(dualStackNetworks('shop', 'fd00:20::/64')).toEqual({
    environment: {
      '?': { id: expect.stringMatching(/^[0-9a-f]{32}$/) as string, type: 'io.murano.resources.CustomNeutronNetwork' },
      name: 'shop-network',
      ipv6Cidr: 'fd00:20::/64',
    },
    flat: null,
  });
  expect(['fd00:20::/64', 'FD00::/64'].every(isIPv6Range)).toBe(true);
  expect(['', 'fd00:20::', 'fd00:20::/48', '10.0.0.0/64', 'x::/64'].some(isIPv6Range)).toBe(false);
});
