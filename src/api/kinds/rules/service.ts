import type { Service, ServiceSpec } from 'kubernetes-types/core/v1.d.ts';
import { type FieldError, invalid } from '../../schema/field-error.ts';
import type { Fields, Rules } from '../kind.ts';

export const serviceRules: Rules = {
  createsOnUpdate: true,
  prepareCreate: service => ({ ...service, status: { loadBalancer: {} } }),
  prepareUpdate: keepAddress,
  checkUpdate: addressErrors,
};

/** What the server has given to a Service stays with it when a client does not mention it. */
function keepAddress(service: Fields, old: Fields): Fields {
  const [spec, before] = [specOf(service), specOf(old)];
  if (spec.type === 'ExternalName' || before.type === 'ExternalName' || !before.clusterIP) return service;
  const { clusterIP = '', clusterIPs } = spec;
  const kept: ServiceSpec = {
    ...spec,
    clusterIP: clusterIP || before.clusterIP,
    clusterIPs:
      clusterIP === '' || clusterIP === before.clusterIP ? (clusterIPs ?? before.clusterIPs ?? []) : [clusterIP],
    ...defined({
      ipFamilies: spec.ipFamilies ?? before.ipFamilies,
      ipFamilyPolicy: spec.ipFamilyPolicy ?? before.ipFamilyPolicy,
    }),
  };
  return { ...service, spec: kept };
}

function addressErrors(service: Fields, old: Fields): FieldError[] {
  const [spec, before] = [specOf(service), specOf(old)];
  if (spec.type === 'ExternalName' || !before.clusterIP || spec.clusterIP === before.clusterIP) return [];
  return [invalid('spec.clusterIPs[0]', [spec.clusterIP], 'may not change once set')];
}

function specOf(service: Fields): ServiceSpec {
  return (service as Service).spec ?? {};
}

function defined(fields: ServiceSpec | Record<string, unknown>): Partial<ServiceSpec> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
