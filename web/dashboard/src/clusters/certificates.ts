// Certificates of clusters, and when they end.
import type { Cluster } from './clusters';

export type Certificate = NonNullable<Cluster['certificates']>[number];

const day = 86_400_000;

/** Burano renews nodes' certificates in the last 90 days, and says in the last year of an authority that it should be exchanged. */
const soon = { node: 90, authority: 365 };

/** How many whole days are left; less than 0 when it has ended. */
export const daysLeft = (certificate: Certificate, now = Date.now()): number => Math.floor((Date.parse(certificate.expires ?? '') - now) / day);

export type Urgency = 'over' | 'soon' | 'later';

export function urgency(certificate: Certificate, now = Date.now()): Urgency {
  const left = daysLeft(certificate, now);
  if (left < 0) return 'over';
  return left < (certificate.node ? soon.node : soon.authority) ? 'soon' : 'later';
}

/** How many certificates are shown before somebody asks for all. */
const few = 6;

/** The certificates that are shown first: those of which something is to be said, and of the others those that end first. */
export function shortened(list: Certificate[], now = Date.now()): Certificate[] {
  const pressing = list.filter((one) => urgency(one, now) !== 'later');
  return list.slice(0, Math.max(few, pressing.length));
}
