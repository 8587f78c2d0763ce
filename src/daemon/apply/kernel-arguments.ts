import { isDeepStrictEqual } from 'node:util';
import type { OperatingSystem } from '../../host/os-release.ts';
import type { Host, HostOs } from '../../host/port.ts';
import { splitKernelArguments } from '../../machine-config-api/kernel-arguments.ts';

/** Arguments of `rpm-ostree kargs`: all old ones out, all new ones in, so that their order is that of the config (spec 60, 8.9.1). */
export function kernelArgumentChanges(before: readonly string[], after: readonly string[]): string[] {
  return [
    ...splitKernelArguments(before).map(argument => `--delete=${argument}`),
    ...splitKernelArguments(after).map(argument => `--append=${argument}`),
  ];
}

/** Changes the kernel arguments, unless the machine has the new ones and none of the old: it may have booted into them. */
export async function updateKernelArguments(
  os: HostOs,
  before: readonly string[],
  after: readonly string[],
): Promise<void> {
  const changes = kernelArgumentChanges(before, after);
  if (changes.length === 0) return;
  const managed = new Set(splitKernelArguments([...before, ...after]));
  const present = (await os.kernelArguments()).filter(argument => managed.has(argument));
  if (!isDeepStrictEqual(present, splitKernelArguments(after))) await os.changeKernelArguments(changes);
}

/** Which of the requested arguments a machine already runs with, in its order: what first boot starts from (spec 60, 5.8.1). */
export function runningKernelArguments(commandLine: string, requested: readonly string[]): string[] {
  const wanted = new Set(splitKernelArguments(requested));
  return splitKernelArguments([commandLine]).filter(argument => wanted.has(argument));
}

/** Where an administrator asks for arguments of his own. */
export const TUNING_FILE = '/etc/pivot/kernel-args';
const LARGEST_TUNING_BYTES = 64 * 1024;
const LARGEST_COMMAND_LINE = 64 * 1024;
/** What may be tuned where arguments belong to the cluster. */
const TUNABLE = new Set(['nosmt']);

export interface TuningChanges {
  readonly add: readonly string[];
  readonly delete: readonly string[];
}

/** What the tuning file asks for and the machine does not have yet; lines that are not allowed are passed over (spec 60, 8.9.4). */
export function tuningChanges(
  file: string | undefined,
  commandLine: string,
  os: Pick<OperatingSystem, 'isEL'>,
): TuningChanges {
  const present = new Set(splitKernelArguments([commandLine]));
  const changes = { add: [] as string[], delete: [] as string[] };
  for (const line of (file ?? '').split('\n')) {
    const [, verb, argument = ''] = /^(ADD|DELETE)\s+(\S.*?)\s*$/.exec(line) ?? [];
    if (verb === undefined || (os.isEL && !TUNABLE.has(argument))) continue;
    if (verb === 'ADD' && !present.has(argument)) changes.add.push(argument);
    if (verb === 'DELETE' && present.has(argument)) changes.delete.push(argument);
  }
  return changes;
}

/** Carries out the tuning file, one change at a time. */
export async function applyTuning({ os, files }: Host, system: OperatingSystem): Promise<void> {
  if (os === undefined || !system.isCoreOSVariant) return;
  const file = (await files.read(TUNING_FILE, LARGEST_TUNING_BYTES))?.toString('utf8');
  if (file === undefined) return;
  const commandLine = (await files.read('/proc/cmdline', LARGEST_COMMAND_LINE))?.toString('utf8') ?? '';
  const changes = tuningChanges(file, commandLine, system);
  for (const argument of changes.add) await os.changeKernelArguments([`--append=${argument}`]);
  for (const argument of changes.delete) await os.changeKernelArguments([`--delete=${argument}`]);
}
