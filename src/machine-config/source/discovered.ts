import type { Dns, Infrastructure, Network, Proxy } from '../../machine-config-api/cluster-config.ts';
import type { ControllerConfigSpec, IpFamilies } from '../../machine-config-api/controller-config.ts';
import { formatIp, parseIp } from '../../pki/ip.ts';
import { SourceError } from './error.ts';

/** What ControllerConfig takes from the cluster's own configuration objects (spec 50, DS-1 to DS-5). Throws `SourceError`. */
export function discoveredSpec(
  infra: Infrastructure,
  network: Network,
  proxy: Proxy | undefined,
  dns: Dns | undefined,
): ControllerConfigSpec {
  const serviceCidrs = network.spec?.serviceNetwork ?? [];
  const type = platformType(infra);
  const { networkType, mtuMigration } = networkSettings(network);
  return {
    clusterDNSIP: clusterDnsIp(serviceCidrs[0]),
    ipFamilies: ipFamilies(serviceCidrs),
    platform: type.toLowerCase(),
    etcdDiscoveryDomain: infra.status?.etcdDiscoveryDomain ?? '',
    infra: {
      ...infra,
      // Embedded objects need both to be accepted.
      apiVersion: 'config.openshift.io/v1',
      kind: 'Infrastructure',
      spec: infra.spec ?? {},
      status: { ...infra.status, platformStatus: { ...infra.status?.platformStatus, type } },
    },
    dns: dns === undefined ? null : { ...dns, apiVersion: 'config.openshift.io/v1', kind: 'DNS', spec: dns.spec ?? {} },
    networkType,
    network: mtuMigration ? { mtuMigration } : null,
    proxy: proxy?.status && Object.values(proxy.status).some(Boolean) ? proxy.status : null,
  };
}

/** The platform, also where only the older field is set (spec 50, DS-3). */
export function platformType(infra: Infrastructure): string {
  const { platformStatus, platform } = infra.status ?? {};
  return (platformStatus ? platformStatus.type : platform) || 'None';
}

/** The tenth address of the first service network (spec 50, DS-1). */
export function clusterDnsIp(cidr: string | undefined): string {
  const field = 'spec.serviceNetwork';
  if (cidr === undefined) throw new SourceError(NETWORK, field, `${NETWORK}: ${field} is empty`);
  const { base, prefix } = parseCidr(cidr);
  const bits = base.length * 8;
  if (bits - prefix < Math.ceil(Math.log2(DNS_HOST + 1))) {
    throw new SourceError(NETWORK, field, `${NETWORK}: ${field}: ${cidr} has no address number ${DNS_HOST}`);
  }
  const address = BigInt(`0x${base.toString('hex')}`);
  const hostBits = BigInt(bits - prefix);
  const ip = (((address >> hostBits) << hostBits) + BigInt(DNS_HOST)).toString(16).padStart(base.length * 2, '0');
  return formatIp(Buffer.from(ip, 'hex'));
}

/** Which IP families services have, and which comes first (spec 50, DS-2). */
export function ipFamilies(cidrs: readonly string[]): IpFamilies {
  const isV6 = cidrs.map(cidr => cidr.includes(':'));
  if (isV6.length === 0) {
    throw new SourceError(
      NETWORK,
      'spec.serviceNetwork',
      `${NETWORK}: could not determine IP families: no service network`,
    );
  }
  if (isV6.every(Boolean)) return 'IPv6';
  if (!isV6.some(Boolean)) return 'IPv4';
  return isV6[0] === true ? 'DualStackIPv6Primary' : 'DualStack';
}

const NETWORK = 'network cluster';
const DNS_HOST = 10;

/** The network in force; during a migration the one that is coming; before the first status what is asked for (DS-4). */
function networkSettings({ spec, status }: Network) {
  const { networkType, migration } = status ?? {};
  if (!networkType) return { networkType: spec?.networkType ?? '', mtuMigration: undefined };
  if (!migration) return { networkType, mtuMigration: undefined };
  return { networkType: migration.networkType ?? '', mtuMigration: migration.mtu };
}

function parseCidr(cidr: string): { base: Buffer; prefix: number } {
  const [, address = '', digits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(cidr) ?? [];
  const base = parseIp(address);
  const prefix = digits === '' ? Number.NaN : Number(digits);
  if (base === undefined || !(prefix <= base.length * 8)) {
    throw new SourceError(NETWORK, 'spec.serviceNetwork', `${NETWORK}: spec.serviceNetwork: ${cidr} is not a CIDR`);
  }
  return { base, prefix };
}
