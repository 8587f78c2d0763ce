import { randomUUID } from 'node:crypto';
import { basename, dirname, join } from 'node:path';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { FALLBACK_FOR_REVISION, FALLBACK_MESSAGE, FALLBACK_REASON } from '../installer/operand.ts';
import { replaceLink, writeFileAtomically } from './atomic-write.ts';
import type { Files } from './files.ts';
import { encodeManifest, readManifest } from './manifest.ts';
import { lastKnownGoodLink, revisionOfDirectory } from './revision-directory.ts';

const FALLBACK_MANIFEST_MODE = 0o644;

export interface FallbackOptions {
  /** `kube-apiserver`: directories are `<target>-pod-<n>`, manifests `<target>-pod.yaml`. */
  readonly targetName: string;
  readonly revision: number;
  readonly resourceDir: string;
  readonly manifestsDir: string;
}

/** The highest revision below `own` whose directory holds its manifest (spec 30, 17.1.4). */
export function findPreviousRevision(
  directories: readonly string[],
  targetName: string,
  own: number,
  hasManifest: (directory: string) => boolean,
): number | undefined {
  const older = directories
    .filter(hasManifest)
    .map(directory => revisionOfDirectory(directory, `${targetName}-pod`))
    .filter(revision => revision !== undefined)
    .filter(revision => revision < own);
  return older.length === 0 ? undefined : Math.max(...older);
}

/** A proven manifest, marked with why it is back. */
export function fallbackManifest(
  pod: Pod,
  { revision, reason, message }: { revision: number; reason: string; message: string },
  newUid: () => string = randomUUID,
): Pod {
  const annotations = {
    ...pod.metadata?.annotations,
    [FALLBACK_FOR_REVISION]: String(revision),
    [FALLBACK_REASON]: reason,
    [FALLBACK_MESSAGE]: message,
  };
  return { ...pod, metadata: { ...pod.metadata, annotations, uid: newUid() } };
}

/** Remembers the own revision as the one to return to. The link says where relative to itself, so it is right in every mount. */
export async function markLastKnownGood(
  files: Files,
  options: FallbackOptions,
  revision = options.revision,
): Promise<void> {
  const { targetName, resourceDir } = options;
  const link = join(resourceDir, lastKnownGoodLink(targetName));
  const target = `${targetName}-pod-${revision}/${targetName}-pod.yaml`;
  if ((await files.linkTarget(link)) !== target) await replaceLink(files, target, link);
}

/**
 * Puts the last revision that proved itself, or failing that the next older one on the disk, in the place of the own one. False
 * when there is none: the failing pod stays.
 */
export async function fallBack(
  files: Files,
  options: FallbackOptions,
  why: { reason: string; message: string },
): Promise<boolean> {
  const { targetName, revision, resourceDir, manifestsDir } = options;
  const good = await revisionToReturnTo(files, options);
  if (good === undefined) return false;
  await markLastKnownGood(files, options, good);
  const path = join(resourceDir, `${targetName}-pod-${good}`, `${targetName}-pod.yaml`);
  const pod = readManifest((await files.readFile(path)).toString(), path);
  const content = encodeManifest(fallbackManifest(pod, { revision, ...why }));
  await writeFileAtomically(files, join(manifestsDir, `${targetName}-pod.yaml`), content, FALLBACK_MANIFEST_MODE);
  return true;
}

async function revisionToReturnTo(files: Files, options: FallbackOptions): Promise<number | undefined> {
  const { targetName, revision, resourceDir } = options;
  const linkPath = join(resourceDir, lastKnownGoodLink(targetName));
  const link = await files.linkTarget(linkPath);
  const linked = link === undefined ? undefined : revisionOfDirectory(basename(dirname(link)), `${targetName}-pod`);
  // A link to the own revision, which just failed to start, is no way back.
  if (linked !== undefined && linked !== revision && (await files.info(linkPath)) !== undefined) return linked;
  const directories = (await files.list(resourceDir))
    .filter(({ kind }) => kind === 'directory')
    .map(({ name }) => name);
  const withManifest = new Set<string>();
  for (const directory of directories) {
    const manifest = await files.info(join(resourceDir, directory, `${targetName}-pod.yaml`));
    if (manifest !== undefined) withManifest.add(directory);
  }
  return findPreviousRevision(directories, targetName, revision, directory => withManifest.has(directory));
}
