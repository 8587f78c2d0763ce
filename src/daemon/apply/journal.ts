import type { Host, HostFiles, UnitEnablement } from '../../host/port.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { IMAGES_DIRECTORY, type PathImage } from './images.ts';
import type { Pruning } from './prune.ts';

/** Anything that goes through JSON unharmed. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** All that is needed to finish an update, or to take it back, after the agent was killed (spec 60, D-41 and D-42). */
export interface Journal {
  readonly version: 1;
  readonly from: MachineConfig | null;
  readonly to: MachineConfig;
  readonly image: string;
  readonly skipCertificateWrite: boolean;
  readonly hasForceFile: boolean;
  /** What is to be done once the config is stored; only the caller understands it. */
  readonly pendingAction: Json;
  /** The boot in which it was begun. */
  readonly bootId: string;
  readonly images: {
    readonly files: readonly PathImage[];
    readonly keys: readonly PathImage[];
    readonly stored: readonly PathImage[];
  };
  readonly prunings: readonly Pruning[];
  /** Password hashes that users of either config had, where they could be read. */
  readonly passwords: Readonly<Record<string, string>>;
  /** How units were enabled that the update touches. */
  readonly enablement: Readonly<Record<string, UnitEnablement>>;
}

/**
 * How far it has come. `applying` goes on after an interruption, once: what is interrupted again (`resuming`) is taken back.
 */
export type Phase = 'applying' | 'resuming' | 'committed' | 'reverting';

/** In their order. Where two are found, the later one counts; they are removed from the first to the last. */
const PHASES: readonly Phase[] = ['applying', 'resuming', 'committed', 'reverting'];
const LARGEST_JOURNAL_BYTES = 64 * 1024 * 1024;
/** It holds whole configs, and these hold pull secrets and password hashes. */
const JOURNAL_MODE = 0o600;

function journalFile(phase: Phase): string {
  return `/etc/machine-config-daemon/rotunda-update-${phase}.json`;
}

/** Where a journal may be. */
export const JOURNAL_FILES: readonly string[] = PHASES.map(journalFile);

/** The update that is under way, undefined when none is. */
export async function readJournal(host: {
  readonly files: HostFiles;
}): Promise<{ phase: Phase; journal: Journal } | undefined> {
  for (const phase of PHASES.toReversed()) {
    const text = await host.files.read(journalFile(phase), LARGEST_JOURNAL_BYTES);
    if (text !== undefined) return { phase, journal: JSON.parse(text.toString('utf8')) as Journal };
  }
  return undefined;
}

/** From here on the update is finished or taken back, whatever happens. */
export async function beginJournal(host: Host, journal: Journal): Promise<void> {
  await writeJournal(host, 'applying', journal);
}

/** The phase is the name of the file: moving it is atomic and needs no room on a full disk. */
export async function moveJournal(host: Host, from: Phase, to: Phase): Promise<void> {
  if (from !== to) await host.files.rename(journalFile(from), journalFile(to));
}

/** Takes up an update after an interruption. What has to follow it follows in this boot, even if it was begun in another one. */
export async function resumeJournal(host: Host, journal: Journal): Promise<Journal> {
  const resumed = { ...journal, bootId: await host.bootId() };
  await writeJournal(host, 'resuming', resumed);
  await host.files.remove(journalFile('applying'));
  return resumed;
}

/** The update is over, one way or the other. Without the journal nobody needs the images. */
export async function endJournal(host: Host): Promise<void> {
  for (const phase of PHASES) await host.files.remove(journalFile(phase));
  await host.files.removeTree(IMAGES_DIRECTORY);
}

async function writeJournal({ files }: Host, phase: Phase, journal: Journal): Promise<void> {
  await files.write(journalFile(phase), Buffer.from(JSON.stringify(journal)), { mode: JOURNAL_MODE });
}
