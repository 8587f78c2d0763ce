import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { canonicalHost, parseIp } from '../pki/hosts.ts';
import type { Network } from './resources.ts';

/** Every address of type InternalIP, in canonical form. Throws when there is none (spec 40, C-7 and T-5). */
export function internalAddresses({ metadata, status }: Node): string[] {
  const addresses = (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address);
  if (addresses.length === 0) throw new Error(`node/${metadata?.name ?? ''} missing InternalIP`);
  return addresses.map(canonicalHost);
}

export type IpFamily = 'tcp4' | 'tcp6';

/** The family of the service network; undefined when the cluster does not say. */
export function preferredFamily(network: Network | undefined): IpFamily | undefined {
  const { status, spec } = network ?? {};
  const [cidr] = status?.serviceNetwork?.length ? status.serviceNetwork : (spec?.serviceNetwork ?? []);
  if (!cidr) return undefined;
  const [address = '', prefix = ''] = cidr.split(/\/(.*)/s);
  const ip = parseIp(address);
  if (ip === undefined || !/^\d{1,3}$/.test(prefix) || Number(prefix) > ip.length * 8)
    throw new Error(`expected a CIDR such as 10.0.0.0/16 as service network, found ${JSON.stringify(cidr)}`);
  return familyOf(ip);
}

/** The address etcd uses on a node: the first of the preferred family, or the first of all. */
export function preferredAddress(node: Node, family: IpFamily | undefined): string {
  const addresses = internalAddresses(node);
  const found = family === undefined ? addresses[0] : addresses.find(address => isOfFamily(address, family));
  if (found !== undefined) return found;
  throw new Error(`no matches found for ip family "${family}" for node "${node.metadata?.name ?? ''}"`);
}

/** The address as it stands in a URL: IPv6 in brackets. */
export function urlHost(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

function isOfFamily(address: string, family: IpFamily): boolean {
  const ip = parseIp(address);
  return ip !== undefined && familyOf(ip) === family;
}

function familyOf(ip: Uint8Array): IpFamily {
  return ip.length === 4 ? 'tcp4' : 'tcp6';
}
