import type { Certificate } from './certificate.ts';
import { formatIp, parseIp } from './ip.ts';

export { parseIp } from './ip.ts';

/** The canonical text of an IP address, any other host unchanged (spec 10, 5.6). */
export function canonicalHost(host: string): string {
  const ip = parseIp(host);
  return ip ? formatIp(ip) : host;
}

/** What the host names of a serving certificate become: common name and subject alternative names, each ready to encode. */
export interface SplitHosts {
  /** The first host in byte order, as given; empty without hosts. */
  readonly commonName: string;
  /** The DNS names, then the canonical text of every IP address: clients exist that look for addresses only here. */
  readonly dnsNames: string[];
  readonly ipAddresses: string[];
}

/** Splits a set of hosts into names and addresses (spec 10, 5.6). Reads `hosts` once (trap 14.19). */
export function splitHosts(hosts: Iterable<string>): SplitHosts {
  const sorted = inByteOrder(new Set(hosts));
  const names: string[] = [];
  const ips = new Set<string>();
  for (const host of sorted) {
    const ip = parseIp(host);
    if (ip) ips.add(formatIp(ip));
    else names.push(host);
  }
  return { commonName: sorted[0] ?? '', dnsNames: [...new Set([...names, ...ips])], ipAddresses: [...ips] };
}

/** Every host a certificate is good for, once each, in byte order: the value of the hostnames annotation (spec 10, 2.4). */
export function hostnamesOf(certificate: Pick<Certificate, 'dnsNames' | 'ipAddresses'>): string[] {
  return inByteOrder(new Set([...certificate.ipAddresses, ...certificate.dnsNames]));
}

/** Sorted as Go sorts (spec 10, 12.7); JavaScript's own order differs above U+FFFF. */
export function inByteOrder(texts: ReadonlySet<string>): string[] {
  return [...texts]
    .map(text => ({ text, bytes: Buffer.from(text) }))
    .sort((a, b) => a.bytes.compare(b.bytes))
    .map(({ text }) => text);
}
