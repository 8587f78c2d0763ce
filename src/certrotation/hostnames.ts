import { canonicalHost, inByteOrder } from '../pki/hosts.ts';

/**
 * Compares the host names a certificate was made for with those required now, as sets and with IP addresses in
 * canonical form on both sides (spec 10, H-1 and trap 14.7). Returns the reason to regenerate, if any.
 */
export function hostnameDifference(annotation: string | undefined, required: Iterable<string>): string | undefined {
  const existing = new Set((annotation ?? '').split(',').map(canonicalHost));
  const wanted = new Set([...required].map(canonicalHost));
  const surplus = existing.difference(wanted);
  const missing = wanted.difference(existing);
  if (surplus.size === 0 && missing.size === 0) return undefined;
  return `${listed(surplus)} are existing and not required, ${listed(missing)} are required and not existing`;
}

/** All of them: who writes the reason down knows how much fits. */
function listed(hosts: Set<string>): string {
  return JSON.stringify(inByteOrder(hosts).join(','));
}
