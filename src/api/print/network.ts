import type { Endpoints, Service } from 'kubernetes-types/core/v1.d.ts';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1.d.ts';
import { AGE, NAME, printerOf, text, wideText } from './column.ts';
import { labelsText } from './workload.ts';

export const servicePrinter = printerOf<Service>([
  NAME,
  text('Type', 'How the service is reached.', ({ spec }) => spec?.type),
  text(
    'Cluster-IP',
    'The address inside the cluster.',
    ({ spec }) => spec?.clusterIPs?.[0] ?? spec?.clusterIP ?? '<none>',
  ),
  text('External-IP', 'Addresses from outside.', externalAddress),
  text('Port(s)', 'The ports it listens on.', portsText),
  AGE,
  wideText('Selector', 'Which pods serve it.', ({ spec }) => labelsText(spec?.selector)),
]);

export const endpointsPrinter = printerOf<Endpoints>([
  NAME,
  text('Endpoints', 'Addresses that serve the service.', ({ subsets = [] }) => {
    const addresses = subsets.flatMap(({ ports, addresses = [] }) => {
      if (ports === undefined || ports.length === 0) return addresses.map(({ ip }) => ip);
      return ports.flatMap(({ port }) => addresses.map(({ ip }) => hostPort(ip, port)));
    });
    return subsets.length === 0 ? '<none>' : firstThree(addresses, '');
  }),
  AGE,
]);

export const endpointSlicePrinter = printerOf<EndpointSlice>([
  NAME,
  text('AddressType', 'IPv4, IPv6 or FQDN.', slice => slice.addressType),
  text('Ports', 'The ports of the endpoints.', ({ ports }) => {
    return firstThree(
      (ports ?? []).map(({ port, name }) => String(port ?? name ?? '*')),
      '<unset>',
    );
  }),
  text('Endpoints', 'Their addresses.', ({ endpoints }) => {
    return firstThree(
      (endpoints ?? []).flatMap(({ addresses }) => addresses),
      '<unset>',
    );
  }),
  AGE,
]);

const MOST_SHOWN = 3;

function firstThree(values: readonly string[], whenEmpty: string): string {
  if (values.length === 0) return whenEmpty;
  const shown = values.slice(0, MOST_SHOWN).join(',');
  return values.length > MOST_SHOWN ? `${shown} + ${values.length - MOST_SHOWN} more...` : shown;
}

function hostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function externalAddress({ spec, status }: Service): string {
  const external = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case 'ExternalName':
      return spec.externalName ?? '';
    case 'LoadBalancer': {
      const balancers = (status?.loadBalancer?.ingress ?? []).flatMap(({ ip, hostname }) => ip || hostname || []);
      return [...[...new Set(balancers)].sort(), ...external].join(',') || '<pending>';
    }
    case 'ClusterIP':
    case 'NodePort':
    case undefined:
      return external.join(',') || '<none>';
    default:
      return '<unknown>';
  }
}

function portsText({ spec }: Service): string {
  const ports = (spec?.ports ?? []).map(({ port, nodePort, protocol = 'TCP' }) => {
    return nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
  });
  return ports.join(',') || '<none>';
}
