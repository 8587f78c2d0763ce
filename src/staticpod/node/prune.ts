import { basename, dirname, join } from 'node:path';
import type { Log } from '../../controller/log.ts';
import type { Clock } from '../../kube/clock.ts';
import { LEFTOVER_AGE_MS, removeOldTemporaries, uniqueSuffix } from './atomic-write.ts';
import { removeOldUnfinished } from './directory-swap.ts';
import type { Entry, Files } from './files.ts';
import { FlagError, parseFlags } from './flags.ts';
import { lastKnownGoodLink, revisionOfDirectory } from './revision-directory.ts';

export interface PruneOptions {
  readonly resourceDir: string;
  /** What directories of revisions begin with: `kube-apiserver-pod`. */
  readonly staticPodName: string;
  readonly maxEligibleRevision: number;
  readonly protectedRevisions: readonly number[];
  /** Below the resource directory. */
  readonly certDir?: string | undefined;
}

export interface PruneDeps {
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
}

const FLAGS = {
  'max-eligible-revision': 'integer',
  'protected-revisions': 'integers',
  'resource-dir': 'text',
  'cert-dir': 'text',
  'static-pod-name': 'text',
} as const;

/** Reads the flags of upstream's pruner (spec 30, 14.2.1). */
export function parsePruneOptions(argv: readonly string[]): PruneOptions {
  const flags = parseFlags(argv, FLAGS);
  if (!flags['resource-dir']) throw new FlagError('--resource-dir is required');
  if (!flags['max-eligible-revision']) throw new FlagError('--max-eligible-revision is required');
  if (!flags['static-pod-name']) throw new FlagError('--static-pod-name is required');
  return {
    resourceDir: flags['resource-dir'],
    staticPodName: flags['static-pod-name'],
    maxEligibleRevision: flags['max-eligible-revision'],
    protectedRevisions: flags['protected-revisions'] ?? [],
    certDir: flags['cert-dir'] || undefined,
  };
}

/**
 * Which directories go: those named exactly `<prefix>-<number>` (T15) whose number is neither protected, nor the one a fallback
 * would return to (T25), nor above the limit.
 */
export function decidePrune(
  directories: readonly string[],
  options: Pick<PruneOptions, 'staticPodName' | 'maxEligibleRevision' | 'protectedRevisions'>,
  lastKnownGood?: number,
): string[] {
  const kept = new Set([...options.protectedRevisions, ...(lastKnownGood === undefined ? [] : [lastKnownGood])]);
  return directories.filter(name => {
    const revision = revisionOfDirectory(name, options.staticPodName);
    return revision !== undefined && revision <= options.maxEligibleRevision && !kept.has(revision);
  });
}

/** Removes old revisions and what crashes left behind (spec 30, 14.2). */
export async function runPrune(options: PruneOptions, { files, clock, log }: PruneDeps): Promise<void> {
  const { resourceDir, staticPodName, certDir } = options;
  const now = clock.now();
  const isDirectory = ({ kind }: Entry) => kind === 'directory';
  const directories = (await files.list(resourceDir)).filter(isDirectory).map(({ name }) => name);
  const link = await files.linkTarget(join(resourceDir, lastKnownGoodLink(staticPodName.replace(/-pod$/, ''))));
  const lastKnownGood = link === undefined ? undefined : revisionOfDirectory(basename(dirname(link)), staticPodName);
  for (const name of decidePrune(directories, options, lastKnownGood)) {
    // Out of sight in one step: a revision that is half gone must not look like one that can be returned to.
    const aside = join(resourceDir, `.${name}.tmp-${uniqueSuffix()}`);
    await files.rename(join(resourceDir, name), aside);
    await files.remove(aside);
    log.info({ directory: name }, 'revision removed');
  }
  await removeOldTemporaries(files, resourceDir, now);
  if (certDir === undefined) return;
  const certificates = join(resourceDir, certDir);
  for (const kind of ['secrets', 'configmaps']) await removeOldUnfinished(files, join(certificates, kind), now);
  if ((await files.linkTarget(certificates)) === undefined) await removeUpstreamTemporaries(files, certificates, now);
}

/** Upstream's writers leave files such as `tls.key.tmp643092404` anywhere below the directory (spec 30, 14.2.3). */
async function removeUpstreamTemporaries(files: Files, directory: string, now: Date): Promise<void> {
  for (const { name, kind } of await files.list(directory)) {
    const path = join(directory, name);
    if (kind === 'directory') await removeUpstreamTemporaries(files, path, now);
    if (kind !== 'file' || !name.includes('.tmp')) continue;
    const info = await files.info(path);
    if (info !== undefined && now.getTime() - info.modifiedAt.getTime() > LEFTOVER_AGE_MS) await files.remove(path);
  }
}
