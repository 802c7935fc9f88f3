// The counters of a cluster's gateways, and their rates per second.
import { queryOptions } from '@tanstack/react-query';

import { answered, api, type Schema } from '../api/client';

export type Traffic = Schema<'Traffic'>;
export type Listener = Traffic['gateways'][number]['listeners'][number];
type Counters = Schema<'TrafficCounters'>;

/** The interval of requests to the gateways while they are shown, in milliseconds. */
const interval = 2_000;

/** The number of samples for drawing: two minutes. */
export const kept = 60;

/** After how long without a sample the former ones are not drawn any more, in milliseconds. */
const pause = 20_000;

/** The gateways' present and recent counters, the newest last; requested again while they are shown. */
export const trafficQuery = (environment: string, cluster: string) =>
  queryOptions({
    queryKey: ['environments', environment, 'clusters', cluster, 'traffic'],
    queryFn: async ({ client, queryKey, signal }): Promise<Traffic[]> =>
      remember(
        client.getQueryData<Traffic[]>(queryKey) ?? [],
        await answered(api.GET('/burano/v1/environments/{environment}/clusters/{cluster}/traffic', { signal, params: { path: { environment, cluster } } })),
      ),
    refetchInterval: interval,
    retry: false,
    staleTime: 0,
  });

/** Appends a sample to the former ones, if they are recent; a known sample changes nothing. */
export function remember(before: Traffic[], sample: Traffic): Traffic[] {
  const last = before.at(-1);
  if (!last || Date.parse(sample.sampled) - Date.parse(last.sampled) > pause) return [sample];
  return last.sampled === sample.sampled ? before : [...before, sample].slice(-kept);
}

/** The shown data of a port: all gateways together. */
export interface PortTraffic {
  /** Connections open now, and begun in the last second. */
  open: number;
  perSecond: number;
  /** Connections per second in each sample, the oldest first. */
  series: number[];
  /** Bytes per second, from clients and to them; null where there is no sample before. */
  bytesIn: number | null;
  bytesOut: number | null;
  /** Errors of all kinds: since HAProxy last loaded a configuration, and in the stored samples. */
  errors: number;
  newErrors: number;
  retries: number;
  /** Backends by their addresses: as the gateways see them, the worst of them. */
  backends: Map<string, { state: State; check: string; perSecond: number }>;
}

type State = Listener['backends'][number]['state'];

const worst: State[] = ['up', 'unchecked', 'draining', 'down'];

const errorsOf = (counted: Counters): number => counted.connection_errors + counted.response_errors + counted.request_errors + counted.denied;

/** By how much a counter has grown; it begins at zero when HAProxy takes a configuration over. */
const grown = (before: number, after: number): number => (after >= before ? after - before : after);

/** The listeners of a port by their gateways' names. */
const listenersOf = (sample: Traffic, port: number): Map<string, Listener> =>
  new Map(
    sample.gateways.flatMap((gateway) => {
      const found = gateway.listeners.find((listener) => listener.port === port);
      return found ? [[gateway.name, found] as const] : [];
    }),
  );

const sum = (values: Iterable<number>): number => [...values].reduce((all, one) => all + one, 0);

/** The growth of a counter between two samples, at the gateways that are in both. */
function growth(before: Map<string, Listener>, after: Map<string, Listener>, of: (listener: Listener) => number): number {
  return sum([...after].map(([gateway, listener]) => {
    const former = before.get(gateway);
    return former ? grown(of(former), of(listener)) : 0;
  }));
}

const timeOf = (sample: Traffic | undefined): number => Date.parse(sample?.sampled ?? '');

/** The shown data of a port; null if no gateway has reported it. */
export function portTraffic(history: Traffic[], port: number): PortTraffic | null {
  const samples = history.map((sample) => listenersOf(sample, port));
  const now = samples.at(-1);
  if (!now || now.size === 0) return null;
  const all = [...now.values()];
  const before = samples.at(-2);
  const seconds = (timeOf(history.at(-1)) - timeOf(history.at(-2))) / 1000;
  const rate = (of: (listener: Listener) => number) => (before && before.size > 0 && seconds > 0 ? growth(before, now, of) / seconds : null);
  const backends: PortTraffic['backends'] = new Map();
  for (const one of all.flatMap((listener) => listener.backends)) {
    const known = backends.get(one.address);
    const worse = known && worst.indexOf(known.state) > worst.indexOf(one.state) ? known : one;
    backends.set(one.address, { state: worse.state, check: worse.check, perSecond: (known?.perSecond ?? 0) + one.connections_per_second });
  }
  return {
    open: sum(all.map((listener) => listener.connections)),
    perSecond: sum(all.map((listener) => listener.connections_per_second)),
    series: samples.map((sample) => sum([...sample.values()].map((listener) => listener.connections_per_second))),
    bytesIn: rate((listener) => listener.bytes_in),
    bytesOut: rate((listener) => listener.bytes_out),
    errors: sum(all.map(errorsOf)),
    newErrors: sum(samples.map((sample, i) => growth(samples[i - 1] ?? sample, sample, errorsOf))),
    retries: sum(all.map((listener) => listener.retries)),
    backends,
  };
}

/** The points of a line through values, in a box of that width and height; the highest value, or 1, reaches the top. */
export function linePoints(values: number[], width: number, height: number): string {
  const most = Math.max(1, ...values);
  const step = width / (kept - 1);
  const first = width - step * (values.length - 1);
  return values.map((value, i) => `${(first + i * step).toFixed(1)},${(height - (value / most) * height).toFixed(1)}`).join(' ');
}
