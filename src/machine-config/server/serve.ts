import { dump } from 'js-yaml';
import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import { escapedDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import { downgraded } from '../../machine-config-api/ignition/downgrade.ts';
import {
  emptyIgnition,
  type IgnitionConfig,
  IgnitionError,
  type IgnitionFile,
} from '../../machine-config-api/ignition/types.ts';
import type { MachineConfig, MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE, DESIRED_CONFIG } from '../../machine-config-api/names.ts';
import { ignitionOf } from '../render/merge.ts';
import type { ServedVersion } from './accept.ts';

const KUBELET_CA_PATH = '/etc/kubernetes/kubelet-ca.crt';
const CLOUD_CA_PATH = '/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem';
const ANNOTATIONS_PATH = '/etc/machine-config-daemon/node-annotations.json';
const KUBECONFIG_PATH = '/etc/kubernetes/kubeconfig';
const CONTENT_PATH = '/etc/mcs-machine-config-content.json';
const ENCAPSULATED_PATH = '/etc/ignition-machine-config-encapsulated.json';

/** The rendered config a new machine of a pool gets: the new one as soon as one machine runs it (spec 50, MS-3). */
export function servedConfigName({ spec, status }: MachineConfigPool): string {
  return ((status?.updatedMachineCount ?? 0) > 0 ? spec?.configuration?.name : status?.configuration?.name) ?? '';
}

/** What a new machine needs besides its rendered config, as it is at the moment it asks. */
export interface FirstBoot {
  readonly rendered: MachineConfig;
  readonly controllerConfig: ControllerConfigSpec;
  /** With which a machine asks for its first certificate. */
  readonly kubeconfig: string;
  readonly version: ServedVersion;
}

/**
 * The Ignition document for a new machine: the rendered config with the CAs of now, also while its pool is paused, and with what
 * the agent and the kubelet start from (spec 50, MS-4, MS-5). Throws `IgnitionError` where an old version cannot say it.
 */
export function firstBootConfig({ rendered, controllerConfig, kubeconfig, version }: FirstBoot): object {
  const [config, machineConfig] = withoutNewKernelArguments(ignitionOf(rendered) ?? emptyIgnition(), rendered, version);
  const name = rendered.metadata?.name ?? '';
  let files = config.storage?.files ?? [];
  files = withCurrent(files, KUBELET_CA_PATH, controllerConfig.kubeAPIServerServingCAData);
  files = withCurrent(files, CLOUD_CA_PATH, controllerConfig.cloudProviderCAData);
  const encapsulated = {
    ...machineConfig,
    spec: { ...machineConfig.spec, config: { ignition: { version: version.startsWith('3') ? '3.4.0' : version } } },
  };
  const added = [
    fileOf(ANNOTATIONS_PATH, JSON.stringify(firstAnnotations(name))),
    fileOf(KUBECONFIG_PATH, kubeconfig),
    fileOf(CONTENT_PATH, JSON.stringify(machineConfig, null, 4)),
    // Read by the agent at first boot for what Ignition does not do; must be the last one.
    fileOf(ENCAPSULATED_PATH, JSON.stringify(encapsulated)),
  ];
  return downgraded({ ...config, storage: { ...config.storage, files: [...files, ...added] } }, version);
}

/** The annotations a new node starts with: it has what it was given (spec 50, MS-5). */
export function firstAnnotations(config: string): Record<string, string> {
  return { [CURRENT_CONFIG]: config, [DESIRED_CONFIG]: config, [DAEMON_STATE]: 'Done' };
}

/** The kubeconfig of machines that have no certificate yet. */
export function bootstrapKubeconfig(server: string, ca: Buffer, token: string): string {
  return dump({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'local', cluster: { server, 'certificate-authority-data': ca.toString('base64') } }],
    users: [{ name: 'kubelet', user: { token } }],
    contexts: [{ name: 'kubelet', context: { cluster: 'local', user: 'kubelet' } }],
    'current-context': 'kubelet',
  });
}

/** Kernel arguments that an older Ignition does not know go back to where the agent applies them. */
function withoutNewKernelArguments(
  config: IgnitionConfig,
  rendered: MachineConfig,
  version: ServedVersion,
): [IgnitionConfig, MachineConfig] {
  const { kernelArguments, ...rest } = config;
  if (kernelArguments === undefined || version === '3.4.0' || version === '3.3.0') return [config, rendered];
  if ((kernelArguments.shouldNotExist ?? []).length > 0) {
    throw new IgnitionError('kernelArguments.shouldNotExist', `cannot be said in Ignition ${version}`);
  }
  const all = [...(rendered.spec?.kernelArguments ?? []), ...(kernelArguments.shouldExist ?? [])];
  return [rest, { ...rendered, spec: { ...rendered.spec, kernelArguments: all } }];
}

/** The file with the current content, in its place or at the end; nothing changes where there is no content. */
function withCurrent(files: readonly IgnitionFile[], path: string, base64: string | null | undefined): IgnitionFile[] {
  if (!base64) return [...files];
  const bytes = Buffer.from(base64, 'base64');
  const isThere = files.some(file => file.path === path);
  if (!isThere) return [...files, fileOf(path, bytes)];
  return files.map(file => (file.path === path ? { ...file, contents: { source: escapedDataUrl(bytes) } } : file));
}

function fileOf(path: string, contents: string | Buffer): IgnitionFile {
  return { path, mode: 0o644, overwrite: true, contents: { source: escapedDataUrl(contents) } };
}
