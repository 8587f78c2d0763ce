import {
  type BuiltInAction,
  builtInAction,
  builtInFileAction,
  builtInNeedsDrain,
  KUBELET_CA,
  REBOOTING_PARTS,
  REGISTRIES_CONF,
} from './built-in-actions.ts';
import { type ConfigDifference, configDifference, type ReadConfig } from './config-difference.ts';
import { policyActions, policyNeedsDrain } from './disruption-policy.ts';
import { contentsOf } from './ignition/contents.ts';
import { changedFiles, changedUnits } from './ignition/difference.ts';
import type { IgnitionConfig } from './ignition/types.ts';
import type { DisruptionAction, DisruptionPolicies } from './machine-configuration.ts';
import { registriesDrainReason } from './registries-conf.ts';

/** What a node does about a change: by the built-in table, or by disruption policies where they are in force. */
export type NodeActions =
  | { readonly engine: 'built-in'; readonly action: BuiltInAction }
  | { readonly engine: 'policy'; readonly actions: readonly DisruptionAction[] };

export interface Disruption {
  readonly difference: ConfigDifference;
  /** Sorted. */
  readonly changedFiles: readonly string[];
  readonly changedUnits: readonly string[];
  readonly actions: NodeActions;
  readonly needsReboot: boolean;
  readonly needsDrain: boolean;
  /** Why it is drained, for people; empty where it is not. */
  readonly drainReasons: readonly string[];
}

export interface DisruptionOptions {
  /** Merged policies of the cluster; undefined where they are not in force or could not be had: the built-in table counts. */
  readonly policies?: DisruptionPolicies | undefined;
  readonly hasForceFile?: boolean | undefined;
  /** ConfigMap `image-registry-override-drain` exists: no drain for registries.conf (spec 60, 9.2; not with policies). */
  readonly hasDrainOverride?: boolean | undefined;
}

/**
 * What happens on a node that goes from one config to the other (spec 60, section 9). The agent acts by it and `explain` foretells by
 * it. Throws `RegistriesConfError` and `IgnitionError` where the safety of a change cannot be judged.
 */
export function decideDisruption(before: ReadConfig, after: ReadConfig, options: DisruptionOptions = {}): Disruption {
  const { policies, hasForceFile = false, hasDrainOverride = false } = options;
  const change = {
    difference: configDifference(before, after, hasForceFile),
    changedFiles: changedFiles(before.ignition, after.ignition),
    changedUnits: changedUnits(before.ignition, after.ignition),
  };
  let registriesReason: string | undefined;
  const findRegistriesReason = () => {
    registriesReason = registriesDrainReason(registriesConfOf(before.ignition), registriesConfOf(after.ignition));
    return registriesReason;
  };
  const disruption = (actions: NodeActions, needsReboot: boolean, needsDrain: boolean): Disruption => {
    const reasons = needsReboot
      ? rebootReasons(change, hasForceFile)
      : registriesReason === undefined
        ? []
        : [registriesReason];
    const drainReasons = reasons.length === 0 ? ['a disruption policy asks for it'] : reasons;
    return { ...change, actions, needsReboot, needsDrain, drainReasons: needsDrain ? drainReasons : [] };
  };

  if (policies === undefined) {
    const action = builtInAction(change.difference, change.changedFiles, hasForceFile);
    const needsDrain = builtInNeedsDrain(action, change.changedFiles, hasDrainOverride, findRegistriesReason);
    return disruption({ engine: 'built-in', action }, action === 'reboot', needsDrain);
  }
  const written = change.changedFiles.filter(isWrittenByUpdates);
  const actions = policyActions(policies, { ...change, changedFiles: written, hasForceFile });
  const needsReboot = actions.some(({ type }) => type === 'Reboot');
  return disruption({ engine: 'policy', actions }, needsReboot, policyNeedsDrain(actions, findRegistriesReason));
}

/** A layered image: nothing is calculated, the node is drained and rebooted whatever differs (spec 60, 8.10). */
export function layeredDisruption(before: ReadConfig, after: ReadConfig, hasForceFile = false): Disruption {
  return {
    difference: configDifference(before, after, hasForceFile),
    changedFiles: changedFiles(before.ignition, after.ignition),
    changedUnits: changedUnits(before.ignition, after.ignition),
    actions: { engine: 'built-in', action: 'reboot' },
    needsReboot: true,
    needsDrain: true,
    drainReasons: ['a layered image is booted into'],
  };
}

/**
 * The certificate writer owns this file, and an update does not touch it (spec 60, 8.1); so it asks for nothing either. Promised by
 * seed 003; the default policies of 4.16 forgot it.
 */
function isWrittenByUpdates(path: string): boolean {
  return path !== KUBELET_CA;
}

function registriesConfOf({ storage }: IgnitionConfig): string | undefined {
  const file = storage?.files?.find(({ path }) => path === REGISTRIES_CONF);
  return file && contentsOf(file.contents).toString('utf8');
}

/** For people. A policy may ask for a reboot where none of these does. */
function rebootReasons(
  { difference, changedFiles, changedUnits }: Pick<Disruption, 'difference' | 'changedFiles' | 'changedUnits'>,
  hasForceFile: boolean,
): string[] {
  return [
    ...(hasForceFile ? ['the force file is there'] : []),
    ...REBOOTING_PARTS.filter(part => difference[part]).map(part => `${part} changed`),
    ...changedUnits.map(unit => `unit ${unit}`),
    ...changedFiles.filter(path => builtInFileAction(path) === 'reboot').map(path => `file ${path}`),
  ];
}
