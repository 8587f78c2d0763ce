import { parseIp } from '../../pki/ip.ts';
import type { Network } from '../resources.ts';
import { mergeConfigs, nested } from '../target-config/merge.ts';
import { type Observer, unchanged } from './observation.ts';

const RESTRICTED = ['admission', 'pluginConfig', 'network.openshift.io/RestrictedEndpointsAdmission', 'configuration'];

const RESTRICTED_TYPE = { apiVersion: 'network.openshift.io/v1', kind: 'RestrictedEndpointsAdmissionConfig' };

/** Endpoints of users may not point into the networks of pods and services. One of them alone does not lift the other's restriction. */
export const restrictedNetworks: Observer = {
  paths: [RESTRICTED],
  observe({ network }, previous) {
    const pods = clusterNetworks(network);
    const problem =
      networkProblem(network) ??
      (pods.length === 0 ? 'networks.config.openshift.io/cluster has no status.clusterNetwork' : undefined);
    // The configuration says what it is in any case, as 4.16 has it.
    if (problem !== undefined) return unchanged(mergeConfigs(previous, nested(RESTRICTED, RESTRICTED_TYPE)), problem);
    const restrictedCIDRs = [...pods, ...serviceNetworks(network)];
    return { config: nested(RESTRICTED, { ...RESTRICTED_TYPE, restrictedCIDRs }) };
  },
};

const SUBNET = ['servicesSubnet'];
const BIND_ADDRESS = ['servingInfo', 'bindAddress'];
const BIND_NETWORK = ['servingInfo', 'bindNetwork'];

/** The service networks, and on which addresses the server listens: IPv6 only where that is all there is (spec 20, 4.4). */
export const servicesSubnet: Observer = {
  paths: [SUBNET, BIND_ADDRESS, BIND_NETWORK],
  observe({ network }, previous) {
    const cidrs = serviceNetworks(network);
    const problem = networkProblem(network);
    if (problem !== undefined) return unchanged(previous, problem);
    const isIpv6Only = cidrs.length === 1 && isIpv6Network(cidrs[0] as string);
    return {
      config: mergeConfigs(
        nested(SUBNET, cidrs.join(',')),
        nested(BIND_ADDRESS, isIpv6Only ? '[::]:6443' : '0.0.0.0:6443'),
        nested(BIND_NETWORK, isIpv6Only ? 'tcp6' : 'tcp4'),
      ),
    };
  },
};

const NODE_PORTS = ['apiServerArguments', 'service-node-port-range'];

export const nodePortRange: Observer = {
  paths: [NODE_PORTS],
  observe({ network }, previous) {
    const range = network?.spec?.serviceNodePortRange ?? '';
    if (range === '') return { config: {} };
    const [, first, last] = /^(\d{1,5})-(\d{1,5})$/.exec(range) ?? [];
    if (first === undefined || Number(first) > Number(last) || Number(last) > 65_535) {
      return unchanged(
        previous,
        `expected ports such as 30000-32767 in spec.serviceNodePortRange, found ${JSON.stringify(range)}`,
      );
    }
    return { config: nested(NODE_PORTS, [range]) };
  },
};

const PROXY = ['targetconfigcontroller', 'proxy'];

/** The way out of the cluster, for the environment of the containers (spec 20, 4.3.2). */
export const proxyVariables: Observer = {
  paths: [PROXY],
  observe({ proxy }) {
    const { httpProxy, httpsProxy, noProxy } = proxy?.status ?? {};
    const variables = { HTTP_PROXY: httpProxy, HTTPS_PROXY: httpsProxy, NO_PROXY: noProxy };
    const present = Object.fromEntries(
      Object.entries(variables).flatMap(([name, value]) => (value ? [[name, value] as const] : [])),
    );
    return { config: Object.keys(present).length === 0 ? {} : nested(PROXY, present) };
  },
};

function networkProblem(network: Network | undefined): string | undefined {
  if (network === undefined) return 'networks.config.openshift.io/cluster does not exist';
  if (serviceNetworks(network).length === 0) return 'networks.config.openshift.io/cluster has no status.serviceNetwork';
  const wrong = [...clusterNetworks(network), ...serviceNetworks(network)].find(cidr => !isNetwork(cidr));
  return wrong === undefined
    ? undefined
    : `expected a network in networks.config.openshift.io/cluster, found ${JSON.stringify(wrong)}`;
}

function clusterNetworks(network: Network | undefined): string[] {
  return (network?.status?.clusterNetwork ?? []).map(({ cidr }) => cidr ?? '');
}

function serviceNetworks(network: Network | undefined): readonly string[] {
  return network?.status?.serviceNetwork ?? [];
}

function isNetwork(cidr: string): boolean {
  const [, address = '', length = ''] = /^([^/]+)\/(\d{1,3})$/.exec(cidr) ?? [];
  const bytes = parseIp(address);
  return bytes !== undefined && Number(length) <= bytes.length * 8;
}

function isIpv6Network(cidr: string): boolean {
  return parseIp(cidr.split('/')[0] ?? '')?.length === 16;
}
