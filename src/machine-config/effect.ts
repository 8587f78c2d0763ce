import { isDeepStrictEqual } from 'node:util';
import { REBOOTING_PARTS } from '../machine-config-api/built-in-actions.ts';
import { isNoDifference, type ReadConfig } from '../machine-config-api/config-difference.ts';
import type { ControllerConfigSpec } from '../machine-config-api/controller-config.ts';
import { type Disruption, type DisruptionOptions, decideDisruption } from '../machine-config-api/disruption.ts';
import { changedFiles } from '../machine-config-api/ignition/difference.ts';
import {
  emptyIgnition,
  type IgnitionConfig,
  IgnitionError,
  type IgnitionUser,
} from '../machine-config-api/ignition/types.ts';
import type { MachineConfig } from '../machine-config-api/machine-config.ts';
import type { DisruptionAction } from '../machine-config-api/machine-configuration.ts';
import { RegistriesConfError } from '../machine-config-api/registries-conf.ts';
import { ignitionOf } from './render/merge.ts';
import { registryCaPath } from './source/registry-ca.ts';

export interface RolloutEffect {
  /**
   * What nodes do about it, for people: `nothing`, `write`, `reboot`, services that are reloaded or restarted, or `refused`
   * where a node could not judge the change and would become Degraded (spec 50, section 13).
   */
  readonly action: string;
  readonly drain: boolean;
  /** Files that differ. */
  readonly paths: readonly string[];
  /** What else asks for the action. */
  readonly reasons: readonly string[];
}

/** What a node does when it goes from one rendered config to another, foretold by what its agent acts by. */
export function rolloutEffect(
  before: MachineConfig,
  after: MachineConfig,
  options: DisruptionOptions = {},
): RolloutEffect {
  const [old, current] = [configOf(before), configOf(after)];
  try {
    const effect = effectOf(decideDisruption(old, current, options));
    return { ...effect, reasons: [...loginReasons(old.ignition, current.ignition), ...effect.reasons] };
  } catch (error) {
    if (!(error instanceof RegistriesConfError || error instanceof IgnitionError)) throw error;
    return {
      action: 'refused',
      drain: false,
      paths: changedFiles(old.ignition, current.ignition),
      reasons: [error.message],
    };
  }
}

function effectOf(disruption: Disruption): RolloutEffect {
  const { difference, changedFiles: paths, changedUnits, needsDrain } = disruption;
  return {
    action: isNoDifference(difference) ? 'nothing' : actionText(disruption),
    drain: needsDrain,
    paths,
    reasons: [
      ...changedUnits.map(unit => `unit ${unit}`),
      ...REBOOTING_PARTS.filter(part => difference[part]).map(part => `spec.${FIELDS[part]}`),
      ...(needsDrain && !disruption.needsReboot ? disruption.drainReasons : []),
    ],
  };
}

/** Whose way into the machine differs, and which; nothing of a key or a password itself. */
function loginReasons({ passwd: before }: IgnitionConfig, { passwd: after }: IgnitionConfig): string[] {
  if (isDeepStrictEqual(before, after)) return [];
  const [old, current] = [before, after].map(passwd => new Map(passwd?.users?.map(user => [user.name, user]))) as [
    Map<string, IgnitionUser>,
    Map<string, IgnitionUser>,
  ];
  const found = [...new Set([...old.keys(), ...current.keys()])].flatMap(name => {
    const [was, is] = [old.get(name), current.get(name)];
    const keys = !isDeepStrictEqual(was?.sshAuthorizedKeys ?? [], is?.sshAuthorizedKeys ?? []);
    const password = (was?.passwordHash ?? '') !== (is?.passwordHash ?? '');
    return [...(keys ? [`SSH keys of ${name}`] : []), ...(password ? [`password of ${name}`] : [])];
  });
  return found.length > 0 ? found : ['users and groups'];
}

const FIELDS = {
  osUpdate: 'osImageURL',
  kargs: 'kernelArguments',
  fips: 'fips',
  kernelType: 'kernelType',
  extensions: 'extensions',
} as const;

function configOf(config: MachineConfig): ReadConfig {
  return {
    name: config.metadata?.name ?? '',
    spec: config.spec ?? {},
    ignition: ignitionOf(config) ?? emptyIgnition(),
  };
}

function actionText({ actions }: Disruption): string {
  if (actions.engine === 'built-in') return actions.action === 'none' ? 'write' : actions.action;
  const texts = actions.actions.map(policyText).filter(text => text !== undefined);
  return texts.length === 0 ? 'write' : [...new Set(texts)].join(', ');
}

/** None and Drain are no actions of their own: the one does nothing, the other is told apart. */
function policyText({ type, reload, restart }: DisruptionAction): string | undefined {
  switch (type) {
    case 'None':
    case 'Drain':
      return undefined;
    case 'Reboot':
      return 'reboot';
    case 'Special':
      return 'reload crio';
    case 'Reload':
      return `reload ${reload?.serviceName ?? ''}`;
    case 'Restart':
      return `restart ${restart?.serviceName ?? ''}`;
    case 'DaemonReload':
      return 'daemon-reload';
  }
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
