import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import type { InfrastructureStatus } from '../../machine-config-api/cluster-config.ts';
import { base64DataUrl } from '../../machine-config-api/ignition/data-url.ts';
import { IGNITION_VERSION } from '../../machine-config-api/ignition/types.ts';
import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import { MACHINE_API_NAMESPACE, SERVER_PORT } from '../../machine-config-api/names.ts';
import { SourceError } from '../source/error.ts';

/** Platforms whose machines reach the API under an address instead of a name. */
const WITH_ADDRESS: Readonly<Record<string, string>> = {
  BareMetal: 'baremetal',
  OpenStack: 'openstack',
  oVirt: 'ovirt',
  VSphere: 'vsphere',
};

/** Where new machines fetch their configuration: `<host>:22623` (spec 50, PC-1). Throws `SourceError`. */
export function ignitionHost(status: InfrastructureStatus): string {
  const apiServerInternalURI = status.apiServerInternalURI ?? '';
  const platformStatus = status.platformStatus ?? {};
  const field = Object.hasOwn(WITH_ADDRESS, platformStatus.type ?? '')
    ? WITH_ADDRESS[platformStatus.type as string]
    : undefined;
  if (field !== undefined) {
    const { apiServerInternalIPs } = (platformStatus[field] ?? {}) as { apiServerInternalIPs?: string[] | null };
    const [address] = apiServerInternalIPs ?? [];
    if (address) return address.includes(':') ? `[${address}]:${SERVER_PORT}` : `${address}:${SERVER_PORT}`;
    if (platformStatus.type !== 'VSphere') {
      const path = `status.platformStatus.${field}.apiServerInternalIPs`;
      throw new SourceError('infrastructure cluster', path, `infrastructure cluster: ${path} is empty`);
    }
  }
  const host = URL.canParse(apiServerInternalURI) ? hostOf(apiServerInternalURI) : undefined;
  if (host === undefined) {
    const path = 'status.apiServerInternalURI';
    throw new SourceError('infrastructure cluster', path, `infrastructure cluster: ${path} is not a URL`);
  }
  return `${host}:${SERVER_PORT}`;
}

/** As it is written there: `URL` would change capital letters. */
function hostOf(uri: string): string | undefined {
  return /^[^:/]+:\/\/(?:[^/?#]*@)?(\[[^\]]*\]|[^:/?#]+)/.exec(uri)?.[1];
}

/** The document a new machine is started with: where its configuration is, and what it verifies that server with (PC-2). */
export function pointerConfig(host: string, rootCa: Buffer, pool: string): object {
  return {
    ignition: {
      config: {
        merge: [{ source: `https://${host}/config/${pool}`, verification: {} }],
        replace: { verification: {} },
      },
      proxy: {},
      security: { tls: { certificateAuthorities: [{ source: base64DataUrl(rootCa), verification: {} }] } },
      timeouts: {},
      version: IGNITION_VERSION,
    },
    kernelArguments: {},
    passwd: {},
    storage: {},
    systemd: {},
  };
}

/** The Secret that the machine API starts machines of a pool with (spec 50, PC-3). */
export function userDataSecret(pool: MachineConfigPool, host: string, rootCa: Buffer): Secret {
  const { name = '', uid = '' } = pool.metadata ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      namespace: MACHINE_API_NAMESPACE,
      name: `${name}-user-data-managed`,
      ownerReferences: [{ apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigPool', name, uid }],
    },
    type: 'Opaque',
    data: {
      disableTemplating: Buffer.from('true\n').toString('base64'),
      userData: Buffer.from(JSON.stringify(pointerConfig(host, rootCa, name))).toString('base64'),
    },
  };
}
