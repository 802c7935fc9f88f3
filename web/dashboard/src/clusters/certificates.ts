// Certificates of clusters, and when they end.
import type { Cluster } from './clusters';

export type Certificate = NonNullable<Cluster['certificates']>[number];

const day = 86_400_000;

/**
 * Burano renews nodes' certificates in the last 90 days, and reports in the last year of an authority that it should
 * be replaced.
 */
const soon = { node: 90, authority: 365 };

/** How many whole days are left; less than 0 when it has ended. */
export const daysLeft = (certificate: Certificate, now = Date.now()): number => Math.floor((Date.parse(certificate.expires ?? '') - now) / day);

export type Urgency = 'over' | 'soon' | 'later';

export function urgency(certificate: Certificate, now = Date.now()): Urgency {
  const left = daysLeft(certificate, now);
  if (left < 0) return 'over';
  return left < (certificate.node ? soon.node : soon.authority) ? 'soon' : 'later';
}

/** The number of certificates that are shown at first. */
const few = 6;

/** The certificates that are shown first: the ones with a remark, and of the others the ones that end first. */
export function shortened(list: Certificate[], now = Date.now()): Certificate[] {
  const pressing = list.filter((one) => urgency(one, now) !== 'later');
  return list.slice(0, Math.max(few, pressing.length));
}
