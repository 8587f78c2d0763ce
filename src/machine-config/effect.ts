import { posix } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ControllerConfigSpec } from '../machine-config-api/controller-config.ts';
import type { MachineConfig } from '../machine-config-api/machine-config.ts';
import { changedFiles, changedUnits } from '../machine-config-api/ignition/difference.ts';
import { emptyIgnition } from '../machine-config-api/ignition/types.ts';
import { ignitionOf } from './render/merge.ts';
import { registryCaPath } from './source/registry-ca.ts';

/** What nodes do about a new rendered config, the mildest first (spec 50, section 13). */
export type NodeAction = 'nothing' | 'write' | 'reload crio' | 'restart crio' | 'reboot';

export interface RolloutEffect {
  readonly action: NodeAction;
  readonly drain: boolean;
  /** Files that differ. */
  readonly paths: readonly string[];
  /** What else asks for the action. */
  readonly reasons: readonly string[];
}

const ORDER: readonly NodeAction[] = ['nothing', 'write', 'reload crio', 'restart crio', 'reboot'];
const REGISTRIES = '/etc/containers/registries.conf';
const FILE_ACTIONS: Readonly<Record<string, NodeAction>> = {
  '/etc/kubernetes/kubelet-ca.crt': 'write',
  '/var/lib/kubelet/config.json': 'write',
  [REGISTRIES]: 'reload crio',
  '/etc/machine-config-daemon/no-reboot/containers-gpg.pub': 'reload crio',
  '/etc/containers/policy.json': 'reload crio',
  '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt': 'restart crio',
};
const DIRECTORY_ACTIONS: Readonly<Record<string, NodeAction>> = {
  '/etc/nmstate/openshift': 'write',
  '/etc/containers/registries.d': 'reload crio',
};

/**
 * What a node does when it goes from one rendered config to another, with 4.16's built-in rules. A change of `registries.conf`
 * is told as one with a drain; the agent spares it where only digest mirrors were added.
 */
export function rolloutEffect(before: MachineConfig, after: MachineConfig): RolloutEffect {
  const [old, current] = [ignitionOf(before) ?? emptyIgnition(), ignitionOf(after) ?? emptyIgnition()];
  const paths = changedFiles(old, current);
  const isKeyChange = !isDeepStrictEqual(old.passwd, current.passwd);
  const reasons = [
    ...changedUnits(old, current).map(unit => `unit ${unit}`),
    ...(['osImageURL', 'kernelType', 'fips', 'kernelArguments', 'extensions'] as const)
      .filter(field => !isDeepStrictEqual(before.spec?.[field] ?? undefined, after.spec?.[field] ?? undefined))
      .map(field => `spec.${field}`),
  ];
  const actions = [
    ...paths.map(path => FILE_ACTIONS[path] ?? DIRECTORY_ACTIONS[posix.dirname(path)] ?? 'reboot'),
    ...(isKeyChange ? ['write' as const] : []),
    ...(reasons.length > 0 ? ['reboot' as const] : []),
  ];
  const action = actions.reduce<NodeAction>(
    (worst, next) => (ORDER.indexOf(next) > ORDER.indexOf(worst) ? next : worst),
    'nothing',
  );
  return { action, drain: action === 'reboot' || paths.includes(REGISTRIES), paths, reasons };
}

/** Where the agent writes what it takes from ControllerConfig itself, on all nodes at once. */
const WRITER_FIELDS = {
  kubeAPIServerServingCAData: '/etc/kubernetes/kubelet-ca.crt',
  cloudProviderCAData: '/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem',
  internalRegistryPullSecret: '/etc/mco/internal-registry-pull-secret.json',
} as const;

export interface ControllerConfigChange {
  /** Fields of the spec that differ, by name. */
  readonly fields: readonly string[];
  /** Files that the agents write because of it, without a rollout. */
  readonly written: readonly string[];
}

/** What a change of ControllerConfig means before anything is rendered: the certificate path (spec 50, sections 0 and 13). */
export function controllerConfigChange(
  before: ControllerConfigSpec,
  after: ControllerConfigSpec,
): ControllerConfigChange {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof ControllerConfigSpec)[];
  const fields = names.filter(name => !isDeepStrictEqual(before[name] ?? undefined, after[name] ?? undefined)).sort();
  const written = fields.flatMap(field =>
    Object.hasOwn(WRITER_FIELDS, field) ? [WRITER_FIELDS[field as keyof typeof WRITER_FIELDS]] : [],
  );
  return { fields, written: [...written, ...changedRegistries(before, after)] };
}

function changedRegistries(before: ControllerConfigSpec, after: ControllerConfigSpec): string[] {
  const entriesOf = (spec: ControllerConfigSpec) =>
    new Map(
      [...(spec.imageRegistryBundleData ?? []), ...(spec.imageRegistryBundleUserData ?? [])].map(({ file, data }) => [
        file,
        data,
      ]),
    );
  const [old, current] = [entriesOf(before), entriesOf(after)];
  return [...new Set([...old.keys(), ...current.keys()])]
    .filter(file => old.get(file) !== current.get(file))
    .map(registryCaPath);
}
