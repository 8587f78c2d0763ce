import { formatIp, parseIp } from '../../pki/ip.ts';
import type { DynamicHostnames } from '../chains.ts';
import { type Infrastructure, internalUrlOf, type Network } from '../resources.ts';

/** The objects that dynamic host names come from; undefined where there is none. */
export interface HostnameInputs {
  readonly network: Network | undefined;
  readonly infrastructure: Infrastructure | undefined;
}

export type HostnameAnswer =
  | { readonly ok: true; readonly hostnames: readonly string[] }
  | { readonly ok: false; readonly problem: string };

/** Which host names a serving chain must have now (spec 20, 1.8). */
export function decideHostnames(source: DynamicHostnames, { network, infrastructure }: HostnameInputs): HostnameAnswer {
  switch (source) {
    case 'service-network':
      return serviceNetworkHostnames(network);
    case 'external-load-balancer':
      return urlHostname(infrastructure, infrastructure?.status?.apiServerURL ?? '', 'apiServerURL');
    case 'internal-load-balancer':
      return urlHostname(infrastructure, infrastructure ? internalUrlOf(infrastructure) : '', 'apiServerInternalURI');
  }
}

const SERVICES = ['kubernetes', 'openshift'];
const SUFFIXES = ['', '.default', '.default.svc', '.default.svc.cluster.local'];

/** The names of the two services, and the first address of every service network. */
function serviceNetworkHostnames(network: Network | undefined): HostnameAnswer {
  if (network === undefined) return no('networks.config.openshift.io/cluster does not exist');
  const cidrs = network.status?.serviceNetwork ?? [];
  // A certificate without the service address would be refused by every pod (trap 10.1.14).
  if (cidrs.length === 0) return no('networks.config.openshift.io/cluster has no status.serviceNetwork');
  const addresses: string[] = [];
  for (const cidr of cidrs) {
    const address = firstAddress(cidr);
    if (address === undefined) {
      const where = 'status.serviceNetwork of networks.config.openshift.io/cluster';
      return no(`expected a network such as 172.30.0.0/16 in ${where}, found ${JSON.stringify(cidr)}`);
    }
    addresses.push(address);
  }
  return { ok: true, hostnames: [...SERVICES.flatMap(name => SUFFIXES.map(suffix => name + suffix)), ...addresses] };
}

function urlHostname(infrastructure: Infrastructure | undefined, url: string, field: string): HostnameAnswer {
  const where = `status.${field} of infrastructures.config.openshift.io/cluster`;
  if (infrastructure === undefined) return no('infrastructures.config.openshift.io/cluster does not exist');
  if (url === '') return no(`${where} is empty`);
  const host = hostOfUrl(url);
  if (host === undefined) return no(`expected a URL with a host in ${where}, found ${JSON.stringify(url)}`);
  return { ok: true, hostnames: [host] };
}

/**
 * The host of a URL, with or without scheme and port, whatever the port is; an IPv6 address loses its brackets, a name the dot that
 * may end it: no client accepts a certificate with either (spec 20, 1.8.4). A scheme that is not HTTP has no host for us.
 */
export function hostOfUrl(url: string): string | undefined {
  const address = url.replace(/^https?:\/\//i, '');
  if (address.includes('://')) return undefined;
  const [, authority = ''] = /^([^/?#]*)/.exec(address) ?? [];
  const [, bracketed] = /^\[([^\]]+)\](?::[^:]*)?$/.exec(authority) ?? [];
  const literal = parseIp(bracketed ?? authority);
  if (literal !== undefined) return formatIp(literal);
  const [, name] = /^([^:]+?)\.?(?::[^:]*)?$/.exec(authority) ?? [];
  return name !== undefined && HOST_NAME.test(name) ? name : undefined;
}

const HOST_NAME = /^[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*$/;

/** Address number 1 of a network; undefined where the text is no network, or the network has no such address. */
export function firstAddress(cidr: string): string | undefined {
  const [, text, length] = /^([^/]+)\/(\d{1,3})$/.exec(cidr) ?? [];
  if (text === undefined || length === undefined) return undefined;
  const address = parseIp(text);
  const bits = Number(length);
  if (address === undefined || bits >= address.length * 8) return undefined;
  const first = Buffer.from(address);
  // Addresses may stand for their network: what is behind the prefix does not count.
  for (let bit = bits; bit < first.length * 8; bit++) first[bit >> 3]! &= ~(0x80 >> (bit & 7));
  first[first.length - 1]! |= 1;
  return formatIp(first);
}

function no(problem: string): HostnameAnswer {
  return { ok: false, problem };
}
