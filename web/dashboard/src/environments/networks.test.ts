import { expect, it } from 'vitest';

import { defaultNetworks } from './networks';

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
