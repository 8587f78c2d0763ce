import {
  CURRENT_CONFIG,
  CURRENT_IMAGE,
  DAEMON_STATE,
  DESIRED_CONFIG,
  DESIRED_IMAGE,
} from '../../machine-config-api/names.ts';
import { isSameTarget, missingAnnotation, type OnDisk, type Target } from './update-needed.ts';

type Annotations = Readonly<Record<string, string>>;

export const ENCAPSULATED_CONFIG = '/etc/ignition-machine-config-encapsulated.json';
export const IGNITION_PRESET = '/etc/systemd/system-preset/20-ignition.preset';
export const INITIAL_ANNOTATIONS = '/etc/machine-config-daemon/node-annotations.json';
/** Singular, as everybody's nodes have it. */
export const INITIAL_ANNOTATIONS_BACKUP = '/etc/machine-config-daemon/node-annotation.json.bak';

/** What an agent finds when it starts. */
export interface StartUpFacts {
  readonly nodeName?: string | undefined;
  readonly annotations: Annotations;
  readonly disk: OnDisk;
  /** Content of `node-annotations.json`; undefined where there is no such file. Its presence means "bootstrapping". */
  readonly initialAnnotations: Annotations | undefined;
  readonly hasForceFile: boolean;
  readonly hasEncapsulatedConfig: boolean;
  readonly hasIgnitionPreset: boolean;
  /** Whether the machine runs the image of the config; asked only when bootstrapping. */
  readonly isOsAsWanted: boolean;
  hasConfig(name: string): boolean;
}

/** Changes that come before any judgement (spec 60, 5.3, steps 1 and 2). */
export type Preparation =
  | { readonly kind: 'rename'; readonly from: string; readonly to: string }
  | { readonly kind: 'remove'; readonly path: string };

export type StartUpDecision =
  /** Nothing can be decided yet. The annotations are written all the same: others wait for them. */
  | {
      readonly kind: 'error';
      readonly message: string;
      readonly missingConfig?: string;
      readonly annotations: Annotations;
    }
  /** The machine must first run the image of its config. */
  | { readonly kind: 'rebase-and-reboot'; readonly current: Target; readonly annotations: Annotations }
  | {
      readonly kind: 'proceed';
      /** What the disk is compared with, and what the next update starts from. */
      readonly current: Target;
      readonly desired: Target;
      /** To be written to the node first: a node that says nothing yet. */
      readonly annotations: Annotations;
      /** The initial annotations have served and are renamed; the config is stored on disk before completion. */
      readonly isBootstrapping: boolean;
      /** The disk says something else than the annotations, and wins. */
      readonly isOverriddenByDisk: boolean;
      /** With the force file nothing is validated and everything applied again. */
      readonly next: 'validate' | 'forced-update';
    };

/** Left-overs of the first boot that are put away before anything else. */
export function decidePreparations({
  hasEncapsulatedConfig,
  hasIgnitionPreset,
}: Pick<StartUpFacts, 'hasEncapsulatedConfig' | 'hasIgnitionPreset'>): readonly Preparation[] {
  return [
    ...(hasEncapsulatedConfig
      ? [{ kind: 'rename' as const, from: ENCAPSULATED_CONFIG, to: `${ENCAPSULATED_CONFIG}.bak` }]
      : []),
    ...(hasIgnitionPreset ? [{ kind: 'remove' as const, path: IGNITION_PRESET }] : []),
  ];
}

/** What an agent that just started does first (spec 60, 5.3, steps 4 to 9). */
export function decideStartUp(facts: StartUpFacts): StartUpDecision {
  const { disk, initialAnnotations, hasForceFile, nodeName = '' } = facts;
  const annotations = missingAnnotations(facts);
  if (annotations === undefined) {
    return {
      kind: 'error',
      annotations: {},
      message: `${missingAnnotation(CURRENT_CONFIG, nodeName)}; neither ${INITIAL_ANNOTATIONS} nor a config on disk to take it from`,
    };
  }
  const node = { ...facts.annotations, ...annotations };
  const [currentConfig, desiredConfig] = [node[CURRENT_CONFIG] ?? '', node[DESIRED_CONFIG] ?? ''];
  for (const [name, value] of [
    [CURRENT_CONFIG, currentConfig],
    [DESIRED_CONFIG, desiredConfig],
  ] as const) {
    if (value === '') return { kind: 'error', annotations, message: missingAnnotation(name, nodeName) };
    if (!facts.hasConfig(value)) {
      return { kind: 'error', annotations, message: `missing MachineConfig ${value}`, missingConfig: value };
    }
  }
  const said = { config: currentConfig, image: node[CURRENT_IMAGE] ?? '' };
  const desired = { config: desiredConfig, image: node[DESIRED_IMAGE] ?? '' };
  const isBootstrapping = initialAnnotations !== undefined;
  if (isBootstrapping && !facts.isOsAsWanted) return { kind: 'rebase-and-reboot', current: said, annotations };
  const current = isBootstrapping ? said : (disk ?? said);
  return {
    kind: 'proceed',
    current,
    desired,
    annotations,
    isBootstrapping,
    isOverriddenByDisk: !isSameTarget(current, said),
    next: hasForceFile ? 'forced-update' : 'validate',
  };
}

/** For a node that says nothing yet: what the config server gave it, else what its disk says. Undefined: neither is there. */
function missingAnnotations({ annotations, initialAnnotations, disk }: StartUpFacts): Annotations | undefined {
  if ((annotations[CURRENT_CONFIG] ?? '') !== '') return {};
  if (initialAnnotations !== undefined) return initialAnnotations;
  if (disk === undefined) return undefined;
  return { [CURRENT_CONFIG]: disk.config, ...(disk.image !== '' && { [CURRENT_IMAGE]: disk.image }) };
}

export type AfterValidation =
  | { readonly kind: 'degraded'; readonly event: 'OnDiskStateValidationFailed'; readonly reason: string }
  /** In the wanted config: ask to be uncordoned, then Done. */
  | { readonly kind: 'complete'; readonly target: Target }
  | { readonly kind: 'update'; readonly event: 'BootResync'; readonly from: Target; readonly to: Target };

/** What follows from the comparison with the disk (spec 60, 5.3, steps 11 and 12). `finalizeFailure` is what the last boot left. */
export function decideAfterValidation(
  { current, desired }: Pick<Extract<StartUpDecision, { kind: 'proceed' }>, 'current' | 'desired'>,
  problem: string | undefined,
  finalizeFailure = '',
): AfterValidation {
  if (problem !== undefined) {
    return {
      kind: 'degraded',
      event: 'OnDiskStateValidationFailed',
      reason: unexpectedDisk(current, problem, finalizeFailure),
    };
  }
  return isSameTarget(current, desired)
    ? { kind: 'complete', target: current }
    : { kind: 'update', event: 'BootResync', from: current, to: desired };
}

/** The reason as it stands on the node (spec 60, 11.1.7). */
export function unexpectedDisk({ config, image }: Target, problem: string, finalizeFailure = ''): string {
  const cause = finalizeFailure === '' ? '' : `; possible root cause: ${finalizeFailure}`;
  return `unexpected on-disk state validating against ${image === '' ? config : image}: ${problem}${cause}`;
}

/** The state a node is taken to be in when it starts: one that says nothing has nothing to say (spec 60, 5.3.5). */
export function stateAtStart(annotations: Annotations): string {
  return annotations[DAEMON_STATE] || 'Done';
}
