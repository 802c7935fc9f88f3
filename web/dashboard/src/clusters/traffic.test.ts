import { describe, expect, it } from 'vitest';

import { kept, linePoints, portTraffic, remember, type Listener, type Traffic } from './traffic';

const none = {
  connections: 0, connections_per_second: 0, connections_total: 0, bytes_in: 0, bytes_out: 0, connection_errors: 0, response_errors: 0,
  request_errors: 0, denied: 0, retries: 0, redispatches: 0,
};
const listener = (part: Partial<Listener>): Listener => ({ ...none, port: 80, queued: 0, backends: [], ...part });
const at = (second: number, ...listeners: Listener[]): Traffic => ({
  sampled: new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString(),
  gateways: listeners.map((one, i) => ({ name: `g${i + 1}`, problem: '', listeners: [one] })),
});

describe('samples of gateways', () => {
  it('are kept for two minutes, each once', () => {
    const one = at(0, listener({}));
    expect(remember([one], { ...one })).toHaveLength(1);
    expect(remember([one], at(60, listener({})))).toHaveLength(1); // it was not shown for a minute
    let all: Traffic[] = [];
    for (let i = 0; i < kept + 5; i++) all = remember(all, at(i, listener({})));
    expect(all).toHaveLength(kept);
    expect(all.at(-1)?.sampled).toBe(at(kept + 4).sampled);
  });
  it('are summed over gateways, and bytes become rates', () => {
    const history = [
      at(0, listener({ bytes_in: 100, bytes_out: 1000, connections_per_second: 1 }), listener({ bytes_in: 0, connections_per_second: 2 })),
      at(2, listener({ bytes_in: 300, bytes_out: 5000, connections_per_second: 4, connections: 3, retries: 1 }), listener({ bytes_in: 100, connections_per_second: 6, connections: 1 })),
    ];
    expect(portTraffic(history, 80)).toMatchObject({ open: 4, perSecond: 10, series: [3, 10], bytesIn: 150, bytesOut: 2000, errors: 0, newErrors: 0, retries: 1 });
    expect(portTraffic(history, 81)).toBeNull();
    expect(portTraffic(history.slice(0, 1), 80)?.bytesIn).toBeNull();
  });
  it('count errors anew when HAProxy does', () => {
    const history = [
      at(0, listener({ connection_errors: 5 })),
      at(2, listener({ connection_errors: 5, denied: 2 })),
      at(4, listener({ connection_errors: 1 })), // a new configuration
      at(6, listener({ connection_errors: 1, response_errors: 1 })),
    ];
    expect(portTraffic(history, 80)).toMatchObject({ errors: 2, newErrors: 2 + 1 + 1 });
  });
  it('count nothing twice when a gateway has not answered for a while', () => {
    const silent: Traffic = { ...at(2), gateways: [{ name: 'g1', problem: 'nobody answers', listeners: [] }] };
    const history = [at(0, listener({ denied: 7 })), silent, at(4, listener({ denied: 7, bytes_in: 9 }))];
    expect(portTraffic(history, 80)).toMatchObject({ errors: 7, newErrors: 0, bytesIn: null });
  });
  it('show a backend as the gateway sees it that sees it worst', () => {
    const backend = { ...none, address: '10.0.0.1:80', seconds: 1 };
    const found = portTraffic([
      at(0, listener({ backends: [{ ...backend, state: 'down', check: 'Layer4 timeout', connections_per_second: 1 }] }), listener({ backends: [{ ...backend, state: 'up', check: '', connections_per_second: 2 }] })),
    ], 80);
    expect(found?.backends.get('10.0.0.1:80')).toEqual({ state: 'down', check: 'Layer4 timeout', perSecond: 3 });
  });
});

it('draws the newest value at the right, and never over the top', () => {
  expect(linePoints([0, 2], 59, 10)).toBe('58.0,10.0 59.0,0.0');
  expect(linePoints([0], 59, 10)).toBe('59.0,10.0');
});
