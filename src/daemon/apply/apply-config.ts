import { type Host, HostError } from '../../host/port.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { takeImages } from './images.ts';
import {
  beginJournal,
  endJournal,
  JOURNAL_FILES,
  type Journal,
  type Json,
  moveJournal,
  type Phase,
  readJournal,
  resumeJournal,
} from './journal.ts';
import { osPartsLeftOut, osRefusal } from './os.ts';
import { sshKeyFiles } from './ssh-keys.ts';
import { runSteps, type Undone, undoSteps } from './steps.ts';
import { CURRENT_CONFIG_FILE, CURRENT_IMAGE_FILE } from './stored.ts';
import {
  configsOf,
  passwordsBefore,
  pruningsOf,
  type StepOptions,
  touchedEnablement,
  touchedPaths,
  updateSteps,
} from './update-steps.ts';

export interface ApplyOptions extends StepOptions {
  /** The kubelet's CA is the certificate writer's; false on first boot and without a cluster. Default true. */
  readonly skipCertificateWrite?: boolean;
  /** The administrator asked for everything to be written again (spec 60, 5.6). */
  readonly hasForceFile?: boolean;
  /** Layered image that is stored beside the config. */
  readonly image?: string;
  /** What is to be done after the commit. Kept with the update, so that a restart finds it (spec 60, D-41). */
  readonly pendingAction?: Json;
}

/** An update whose config is stored. It is over with `finishUpdate`, or taken back with `revertConfig`. */
export interface Applied {
  readonly from: MachineConfig | undefined;
  readonly to: MachineConfig;
  readonly pendingAction: Json;
}

/**
 * Makes the machine what a config says, from the first file to the commit: storing the config (spec 60, 8.1, steps 9 to 15). What
 * fails is taken back as a whole; after a crash `recoverInterrupted` goes on. Throws `UpdateError`, or another error when nothing
 * had been begun.
 */
export async function applyConfig(
  host: Host,
  from: MachineConfig | undefined,
  to: MachineConfig,
  options: ApplyOptions = {},
): Promise<Applied> {
  await settle(host, options);
  const journal = await plan(host, from, to, options);
  await beginJournal(host, journal);
  return carryOut(host, journal, 'applying', options);
}

/** Takes back an update that is committed, because what had to follow failed (spec 60, 8.1, rule 2). */
export async function revertConfig(host: Host, options: StepOptions = {}): Promise<Undone> {
  const found = await readJournal(host);
  if (found === undefined) throw new Error('there is no update that could be taken back');
  return revert(host, found.journal, found.phase, options);
}

/** What had to follow an update is done; nothing of it is needed any more. */
export async function finishUpdate(host: Host): Promise<void> {
  await endJournal(host);
}

export type Recovery =
  /** No update was interrupted. */
  | { readonly outcome: 'nothing' }
  /** The node is as it was before the update, which may be tried again. */
  | {
      readonly outcome: 'reverted';
      readonly from: MachineConfig | undefined;
      readonly to: MachineConfig;
      readonly reason: string;
    }
  /** The config is stored and complete; what has to follow it was not finished. */
  | ({ readonly outcome: 'committed'; readonly hasRebooted: boolean } & Applied);

/**
 * Brings an update to an end that the agent was killed in: forward, and back when that fails or was interrupted too. Afterwards the
 * disk is complete in the new or the old state (spec 60, D-42). To be called at start, before the disk is validated.
 */
export async function recoverInterrupted(host: Host, options: StepOptions = {}): Promise<Recovery> {
  const found = await readJournal(host);
  if (found === undefined) {
    // Images without a journal: nothing had been changed yet, or all was over.
    await removeLeftovers(host);
    await endJournal(host);
    return { outcome: 'nothing' };
  }
  await removeLeftovers(host, found.journal);
  if (found.phase === 'committed') return committed(host, found.journal);
  // On a full disk there is no going on, only back.
  const resumed =
    found.phase === 'applying' ? await resumeJournal(host, found.journal).catch(() => undefined) : undefined;
  if (resumed !== undefined) return resume(host, resumed, options);
  const { journal, phase } = (await readJournal(host)) ?? found;
  const { undoErrors } = await revert(host, journal, phase, options);
  if (undoErrors[0] !== undefined) throw undoErrors[0];
  return reverted(journal, 'it was interrupted repeatedly, or the disk is full');
}

async function resume(host: Host, journal: Journal, options: StepOptions): Promise<Recovery> {
  try {
    await carryOut(host, journal, 'resuming', options);
    return await committed(host, journal);
  } catch (error) {
    options.log?.warn({ err: error, config: journal.to.metadata?.name }, 'an interrupted update could not be finished');
    if ((await readJournal(host)) !== undefined) throw error;
    return reverted(journal, (error as Error).message);
  }
}

function reverted({ from, to }: Journal, reason: string): Recovery {
  return { outcome: 'reverted', from: from ?? undefined, to, reason };
}

async function committed(host: Host, { from, to, pendingAction, bootId }: Journal): Promise<Recovery> {
  const hasRebooted = (await host.bootId()) !== bootId;
  return { outcome: 'committed', hasRebooted, from: from ?? undefined, to, pendingAction };
}

/** Everything that will be needed to go back is kept before anything is changed. */
async function plan(
  host: Host,
  from: MachineConfig | undefined,
  to: MachineConfig,
  options: ApplyOptions,
): Promise<Journal> {
  const { skipCertificateWrite = true, hasForceFile = false, image = '', pendingAction = null } = options;
  const change = { from: from ?? null, to, skipCertificateWrite, hasForceFile };
  const configs = configsOf(change);
  const refusal = osRefusal(host, ...configs);
  if (refusal !== undefined) throw new HostError('unsupported', refusal);
  const leftOut = osPartsLeftOut(host, ...configs);
  if (leftOut.length > 0) options.log?.warn({ leftOut }, 'updating the OS on non-CoreOS nodes is not supported');
  try {
    const prunings = await pruningsOf(host, change);
    return {
      version: 1,
      ...change,
      image,
      pendingAction,
      bootId: await host.bootId(),
      prunings,
      passwords: await passwordsBefore(host, change),
      enablement: await touchedEnablement(host, change),
      images: {
        files: await takeImages(host, await touchedPaths(host, change, prunings), 'file'),
        keys: await takeImages(host, await sshKeyFiles(host), 'key'),
        stored: await takeImages(host, [CURRENT_IMAGE_FILE, CURRENT_CONFIG_FILE], 'stored'),
      },
    };
  } catch (error) {
    await endJournal(host).catch(() => {});
    throw error;
  }
}

async function carryOut(host: Host, journal: Journal, phase: Phase, options: StepOptions): Promise<Applied> {
  const steps = await updateSteps(host, journal, options);
  await runSteps(steps, () => moveJournal(host, phase, 'reverting')).catch(async (error: unknown) => {
    // A node that could not be taken back keeps the journal: the next attempt begins with that.
    if (!hasUndoErrors(error)) await endJournal(host);
    throw error;
  });
  await moveJournal(host, phase, 'committed');
  return { from: journal.from ?? undefined, to: journal.to, pendingAction: journal.pendingAction };
}

function hasUndoErrors(error: unknown): boolean {
  return !(error instanceof Error && 'undoErrors' in error && (error.undoErrors as unknown[]).length === 0);
}

async function revert(host: Host, journal: Journal, phase: Phase, options: StepOptions): Promise<Undone> {
  await moveJournal(host, phase, 'reverting');
  const undone = await undoSteps(await updateSteps(host, journal, options));
  if (undone.undoErrors.length === 0) await endJournal(host);
  return undone;
}

/** An update that could not be taken back must be before another one begins. */
async function settle(host: Host, options: StepOptions): Promise<void> {
  const found = await readJournal(host);
  if (found === undefined || found.phase === 'committed') return endJournal(host);
  const { undoErrors } = await revert(host, found.journal, found.phase, options);
  if (undoErrors[0] !== undefined)
    throw new Error(`the update before could not be taken back: ${undoErrors[0].message}`, { cause: undoErrors[0] });
}

/** Temporary files that writes left when the agent was killed in them. */
async function removeLeftovers({ files }: Host, journal?: Journal): Promise<void> {
  const { images } = journal ?? { images: { files: [], keys: [], stored: [] } };
  const paths = [...images.files, ...images.keys, ...images.stored].map(({ path }) => path);
  for (const path of [...paths, ...JOURNAL_FILES, '/etc/shadow']) await files.removeLeftovers?.(path).catch(() => {});
}
