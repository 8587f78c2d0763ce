import type { Host } from '../../host/port.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { type Applied, type ApplyOptions, applyConfig } from './apply-config.ts';

const LARGEST_CONFIG_BYTES = 16 * 1024 * 1024;

/** Whether an argument of once-from names a file, and not a URL or a mistake (spec 60, 5.8.2). */
export function isOnceFromPath(argument: string): boolean {
  return argument.startsWith('/') || argument.startsWith('.');
}

/**
 * Applies the MachineConfig, or the Ignition document, in a file of the host as if the machine had none: without a cluster, without
 * a drain and without a journal of what came before.
 */
export async function applyOnceFrom(host: Host, path: string, options: ApplyOptions = {}): Promise<Applied> {
  const text = await host.files.read(path, LARGEST_CONFIG_BYTES);
  if (text === undefined) throw new Error(`${path} does not exist`);
  const document = JSON.parse(text.toString('utf8')) as MachineConfig & { ignition?: object };
  const config =
    document.ignition === undefined ? document : { metadata: { name: 'once-from' }, spec: { config: document } };
  return applyConfig(host, undefined, config, { ...options, skipCertificateWrite: false });
}
