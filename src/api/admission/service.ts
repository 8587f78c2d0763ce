import type { Service, ServiceSpec } from 'kubernetes-types/core/v1.d.ts';
import { internalError } from '../status.ts';
import type { Store } from '../store/store.ts';

/** OpenShift's usual service network. Nothing routes it here: the addresses only have to exist and be distinct. */
const NETWORK = [172, 30] as const;
const ADDRESSES = 2 ** 16;

/** Gives a Service an address of its own if it is of a type that has one. */
export function admitService(store: Store, service: Service): Service {
  const spec = service.spec ?? {};
  if (spec.type === 'ExternalName') return service;
  const address = spec.clusterIP || freeAddress(store, service);
  const given: ServiceSpec = {
    ...spec,
    clusterIP: address,
    clusterIPs: spec.clusterIPs ?? [address],
    ipFamilies: spec.ipFamilies ?? ['IPv4'],
    ipFamilyPolicy: spec.ipFamilyPolicy ?? 'SingleStack',
  };
  return { ...service, spec: given };
}

function freeAddress(store: Store, service: Service): string {
  const taken = new Set<string | undefined>();
  for (const { object } of store.newestOf('/services')) taken.add((object as Service).spec?.clusterIP);
  const { namespace = '', name = '' } = service.metadata ?? {};
  // Starting from the name makes the choice the same in every run.
  const start = hash(`${namespace}/${name}`);
  for (let step = 0; step < ADDRESSES; step++) {
    const host = (start + step) % ADDRESSES;
    const address = [...NETWORK, host >> 8, host & 255].join('.');
    // The first ten are left to Services that ask for a fixed one, such as `kubernetes` and DNS.
    if (host > 10 && host < ADDRESSES - 1 && !taken.has(address)) return address;
  }
  throw internalError('failed to allocate a serviceIP: range is full');
}

function hash(text: string): number {
  let value = 2166136261;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 16777619) >>> 0;
  return value % ADDRESSES;
}
