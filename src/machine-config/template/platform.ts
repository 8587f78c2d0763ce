import type { InfrastructureStatus, PlatformStatus } from '../../machine-config-api/cluster-config.ts';

/** A cluster that templates cannot be made for. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

const BASE = '_base';
const ON_PREM = 'on-prem';
const SINGLE_NODE = 'sno';
const NONE = 'none';

const KNOWN = new Set([
  'AWS',
  'AlibabaCloud',
  'Azure',
  'BareMetal',
  'GCP',
  'OpenStack',
  'Libvirt',
  'oVirt',
  'VSphere',
  'KubeVirt',
  'PowerVS',
  'None',
  'External',
  'Nutanix',
]);
const ON_PREM_PLATFORMS = new Set(['BareMetal', 'oVirt', 'OpenStack', 'VSphere', 'Nutanix']);
const EXTERNAL_CLOUD_PROVIDERS = new Set([
  'AlibabaCloud',
  'AWS',
  'Azure',
  'GCP',
  'IBMCloud',
  'KubeVirt',
  'Nutanix',
  'OpenStack',
  'PowerVS',
  'VSphere',
]);

/** The directory of a platform; one we do not know is treated as none (spec 50, TM-6). Throws `TemplateError`. */
export function platformDirectory(type: string | undefined): string {
  if (!type) throw new TemplateError('cannot generate MachineConfigs when no platformStatus.type is set');
  if (type === BASE) throw new TemplateError(`platform ${BASE} unsupported`);
  return KNOWN.has(type) ? type.toLowerCase() : NONE;
}

/** The directories whose templates count, in order: later ones replace earlier ones file by file (spec 50, TM-3). */
export function platformDirectories(
  status: Pick<InfrastructureStatus, 'platformStatus' | 'controlPlaneTopology'>,
): string[] {
  const type = status.platformStatus?.type;
  const directory = platformDirectory(type);
  return [
    BASE,
    ...(ON_PREM_PLATFORMS.has(type ?? '') ? [ON_PREM] : []),
    directory,
    ...(status.controlPlaneTopology === 'SingleReplica' ? [SINGLE_NODE] : []),
  ];
}

/** Whether kubelets leave the cloud to a controller of its own. */
export function isExternalCloudProvider(status: PlatformStatus | undefined): boolean {
  if (status?.type !== 'External') return EXTERNAL_CLOUD_PROVIDERS.has(status?.type ?? '');
  const { cloudControllerManager } = (status['external'] ?? {}) as { cloudControllerManager?: { state?: string } };
  return cloudControllerManager?.state === 'External';
}
