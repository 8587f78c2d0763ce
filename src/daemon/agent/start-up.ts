import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { Log } from '../../controller/log.ts';
import { readOperatingSystem } from '../../host/os-release.ts';
import type { Host } from '../../host/port.ts';
import { CURRENT_CONFIG, DESIRED_CONFIG, OSTREE_FINALIZE_FAILURE } from '../../machine-config-api/names.ts';
import { readConfig } from '../../machine-config-api/reconciliation.ts';
import { finishUpdate, recoverInterrupted } from '../apply/apply-config.ts';
import { moveSshKeys } from '../apply/ssh-keys.ts';
import { readStored, type StoredState, store } from '../apply/stored.ts';
import type { ActionPlan } from '../decide/action-plan.ts';
import {
  decideAfterValidation,
  decidePreparations,
  decideStartUp,
  ENCAPSULATED_CONFIG,
  IGNITION_PRESET,
  INITIAL_ANNOTATIONS,
  INITIAL_ANNOTATIONS_BACKUP,
  type StartUpDecision,
} from '../decide/start-up.ts';
import type { Target } from '../decide/update-needed.ts';
import { shownReason } from '../node-writer.ts';
import { announce, announcements } from './announcements.ts';
import { complete } from './completion.ts';
import { bootedProblem, machineProblem } from './disk-check.ts';
import { followUp, type UpdateOutcome } from './follow-up.ts';
import { FORCE_FILE, hasForceFile } from './force-file.ts';
import type { AgentParts } from './parts.ts';
import { rebootNode } from './reboot.ts';
import { update } from './update.ts';

type Proceed = Extract<StartUpDecision, { kind: 'proceed' }>;

/**
 * What the agent does before anything else (spec 60, 5.3): takes up or takes back what was interrupted, finds out which config the
 * machine is in, compares it with the disk, and goes where it should be. Repeated until it succeeds.
 */
export async function startUp(parts: AgentParts): Promise<UpdateOutcome> {
  const { host, log, writer, node } = parts;
  log.info({ node: node.name }, `Starting to manage node: ${node.name}`);
  const pending = await takeUpInterrupted(parts);
  if (pending !== undefined) return pending;
  await prepare(host, log);
  if (isControlPlane(node.get())) await host.os?.flushEachObject?.();
  const decision = await decide(parts);
  if (Object.keys(decision.annotations).length > 0) await writer.annotate(decision.annotations);
  if (decision.kind === 'error') throw new Error(decision.message);
  await tellFinalizeFailure(parts);
  await removeRollback(host);
  if (decision.kind === 'rebase-and-reboot') return rebase(parts, decision.current);
  const current = await settled(parts, decision);
  if (decision.next === 'forced-update') {
    log.warn({}, `Skipping on-disk validation; ${FORCE_FILE} present`);
    return update(parts, current, await named(parts, decision.desired));
  }
  await moveKeys(parts, current);
  return validateAndGoOn(parts, decision, current);
}

/**
 * An update the agent was killed in is finished or taken back, so that the disk is complete either way and nobody calls that a failure
 * (D-42). What had to follow a committed one follows now (D-41), unless the machine has been rebooted since.
 */
async function takeUpInterrupted(parts: AgentParts): Promise<UpdateOutcome | undefined> {
  const { host, log, clock } = parts;
  const recovery = await recoverInterrupted(host, { log, clock });
  switch (recovery.outcome) {
    case 'nothing':
      return undefined;
    case 'reverted':
      log.warn({ to: recovery.to.metadata?.name, reason: recovery.reason }, 'an interrupted update was taken back');
      return undefined;
    case 'committed': {
      const plan = recovery.pendingAction as unknown as ActionPlan | null;
      if (recovery.hasRebooted || plan === null) {
        await finishUpdate(host);
        return undefined;
      }
      log.info(
        { to: recovery.to.metadata?.name, ending: plan.ending },
        'an interrupted update goes on after its commit',
      );
      return followUp(parts, plan, recovery.to.metadata?.name ?? '');
    }
  }
}

function isControlPlane(node: Node | undefined): boolean {
  return Object.hasOwn(node?.metadata?.labels ?? {}, 'node-role.kubernetes.io/master');
}

/** Says on the node why what was staged in the last boot did not come into effect, or no longer (spec 60, 5.3.5, D-26). */
async function tellFinalizeFailure({ host, node, writer, events, log }: AgentParts): Promise<void> {
  let failure: string | undefined;
  try {
    failure = await host.os?.finalizeFailure?.();
  } catch (error) {
    log.warn({ err: error }, 'failed to query for deployment failure');
  }
  const said = node.annotations()[OSTREE_FINALIZE_FAILURE] ?? '';
  const shown = failure === undefined ? said : shownReason(failure);
  if (shown === said) return;
  if (shown !== '') {
    log.warn({ failure: shown }, 'Failed to finalize previous deployment');
    announce(events, announcements.finalizationFailed(shown));
  }
  await writer.annotate({ [OSTREE_FINALIZE_FAILURE]: shown });
}

/** A machine that has come this far will not be taken back to the deployment before, which takes up room (spec 60, 5.3.6). */
async function removeRollback({ os, files }: Host): Promise<void> {
  if (os !== undefined && (await readOperatingSystem(files)).isCoreOSVariant) await os.removeRollback();
}

/** Left-overs of the first boot are put away; a config that is still there means that it did not come to its end. */
async function prepare({ files }: Host, log: Log): Promise<void> {
  const has = async (path: string) => (await files.stat(path)) !== undefined;
  const facts = {
    hasEncapsulatedConfig: await has(ENCAPSULATED_CONFIG),
    hasIgnitionPreset: await has(IGNITION_PRESET),
  };
  if (facts.hasEncapsulatedConfig)
    log.warn({}, 'Failed to complete machine-config-daemon-firstboot before joining cluster!');
  for (const step of decidePreparations(facts)) {
    if (step.kind === 'rename') await files.rename(step.from, step.to);
    else await files.remove(step.path);
  }
}

async function decide({ host, node, configs, log }: AgentParts): Promise<StartUpDecision> {
  const annotations = node.annotations();
  const stored = await readStored(host);
  const initialAnnotations = await readInitialAnnotations(host);
  const said = { ...initialAnnotations, ...annotations };
  const hasConfig = await configs.among([said[CURRENT_CONFIG], said[DESIRED_CONFIG]], stored);
  const current = initialAnnotations && (await configs.get(said[CURRENT_CONFIG] ?? ''));
  const decision = decideStartUp({
    nodeName: node.name,
    annotations,
    initialAnnotations,
    disk: stored && { config: stored.config.metadata?.name ?? '', image: stored.image },
    hasForceFile: await hasForceFile(host.files),
    hasEncapsulatedConfig: false,
    hasIgnitionPreset: false,
    isOsAsWanted: current === undefined || (await bootedProblem(host, current.spec?.osImageURL ?? '')) === undefined,
    hasConfig,
  });
  if (decision.kind === 'proceed' && decision.isOverriddenByDisk) {
    const text = `Disk currentConfig "${decision.current.config}" overrides node's currentConfig annotation "${said[CURRENT_CONFIG]}"`;
    log.info({}, text);
  }
  return decision;
}

const LARGEST_ANNOTATIONS_BYTES = 256 * 1024;

async function readInitialAnnotations({ files }: Host): Promise<Record<string, string> | undefined> {
  const text = await files.read(INITIAL_ANNOTATIONS, LARGEST_ANNOTATIONS_BYTES);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text.toString('utf8'));
  } catch (error) {
    throw new Error(`${INITIAL_ANNOTATIONS}: expected JSON`, { cause: error });
  }
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isMap || !Object.values(value as object).every(item => typeof item === 'string')) {
    throw new Error(`${INITIAL_ANNOTATIONS}: expected a JSON object of texts`);
  }
  return value as Record<string, string>;
}

/** The config the machine is in. One that has just been installed writes it down first (spec 60, 10.4.1). */
async function settled(parts: AgentParts, { current, isBootstrapping }: Proceed): Promise<StoredState> {
  const { host } = parts;
  const stored = await readStored(host);
  const isStored = stored?.config.metadata?.name === current.config && stored.image === current.image;
  if (isStored && !isBootstrapping) return stored;
  const state = await named(parts, current);
  await store(host, state.config, state.image);
  if (isBootstrapping) await host.files.rename(INITIAL_ANNOTATIONS, INITIAL_ANNOTATIONS_BACKUP);
  return state;
}

async function validateAndGoOn(parts: AgentParts, decision: Proceed, current: StoredState): Promise<UpdateOutcome> {
  const { host, log, events, node } = parts;
  log.info({}, `Validating against current config ${decision.current.config}`);
  const finalizeFailure = node.annotations()[OSTREE_FINALIZE_FAILURE];
  const next = decideAfterValidation(decision, await machineProblem(host, current), finalizeFailure);
  if (next.kind === 'degraded') {
    announce(events, announcements.diskValidationFailed(next.reason));
    throw new Error(next.reason);
  }
  log.info({}, 'Validated on-disk state');
  if (next.kind === 'complete') return (await complete(parts)) ? 'done' : 'again';
  announce(events, announcements.bootResync(node.name, next.from.config, next.to.config));
  return update(parts, current, await named(parts, next.to));
}

/** A machine that was installed with another image than its config names goes there first (spec 60, 5.3.7). */
async function rebase(parts: AgentParts, current: Target): Promise<UpdateOutcome> {
  const { config } = await named(parts, current);
  const image = config.spec?.osImageURL ?? '';
  await parts.host.os?.rebase(image);
  const rationale = `Node will reboot into image ${image}`;
  parts.events.event('Normal', 'Reboot', rationale);
  await rebootNode(parts, rationale);
  return 'rebooting';
}

/** Keys at the place of an older release move to the new one (spec 60, 5.3.10). */
async function moveKeys({ host, log }: AgentParts, { config }: StoredState): Promise<void> {
  const users = readConfig(config, { isStored: true }).ignition.passwd?.users ?? [];
  await moveSshKeys(host, await readOperatingSystem(host.files), users, log);
}

/** A config of the cluster by its name. */
export async function named(
  { configs }: Pick<AgentParts, 'configs'>,
  { config: name, image }: Target,
): Promise<StoredState> {
  const config = await configs.get(name);
  if (config === undefined) throw new Error(`missing MachineConfig ${name}`);
  return { config, image };
}
