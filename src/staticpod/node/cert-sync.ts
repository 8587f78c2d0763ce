import { join } from 'node:path';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { errorText, throwIfAny } from '../../controller/aggregate-error.ts';
import type { Log } from '../../controller/log.ts';
import { KubeError } from '../../kube/error.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, type Resource, SECRETS } from '../../kube/resource.ts';
import type { ContentCheck } from '../loadable.ts';
import {
  isUpToDate,
  readDirectory,
  recoverDirectories,
  removeDirectory,
  removeUnfinished,
  replaceDirectory,
} from './directory-swap.ts';
import type { Files } from './files.ts';
import { directoryOf, filesOf, type NamedObject, type ObjectKind } from './object-files.ts';
import { asOnlyWriter, type TakeLock } from './writers-lock.ts';

export interface CertSyncOptions {
  readonly namespace: string;
  readonly destinationDir: string;
  readonly configMaps: readonly NamedObject[];
  readonly secrets: readonly NamedObject[];
  /** What no process could load is not written: the last good files stay. */
  readonly contentCheck?: ContentCheck | undefined;
}

export interface CertSyncDeps {
  /** Asked directly before anything on the disk changes: a cache may be behind. */
  readonly kube: Kube;
  readonly cached: (kind: ObjectKind, name: string) => Secret | ConfigMap | undefined;
  readonly files: Files;
  /** Taken around each change of the disk: installers write there too. */
  readonly lock: TakeLock;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly log: Log;
  readonly signal?: AbortSignal | undefined;
}

/**
 * One pass over all objects that are mirrored to the disk (spec 30, section 11): ConfigMaps in order, then Secrets. A failure of
 * one does not stop the others; all of them come out together at the end.
 */
export async function syncCertificates(options: CertSyncOptions, deps: CertSyncDeps): Promise<void> {
  const errors: unknown[] = [];
  for (const kind of ['configmaps', 'secrets'] as const) {
    for (const wanted of kind === 'configmaps' ? options.configMaps : options.secrets) {
      deps.signal?.throwIfAborted();
      try {
        await syncObject(kind, wanted, options, deps);
      } catch (error) {
        errors.push(error);
      }
    }
  }
  throwIfAny(errors);
}

/** Puts right what an earlier run left behind, before anything is asked of the API. */
export async function prepareDestination({ destinationDir }: CertSyncOptions, files: Files): Promise<void> {
  for (const kind of ['configmaps', 'secrets'] as const) {
    await recoverDirectories(files, join(destinationDir, kind));
    await removeUnfinished(files, join(destinationDir, kind), 'cert-sync');
  }
}

async function syncObject(
  kind: ObjectKind,
  { name, optional = false }: NamedObject,
  options: CertSyncOptions,
  deps: CertSyncDeps,
): Promise<void> {
  const target = directoryOf(options.destinationDir, kind, name);
  const cached = deps.cached(kind, name);
  if (cached !== undefined) return writeObject(kind, cached, target, options, deps);
  if (!optional) throw new KubeError(404, 'NotFound', `${kind} "${name}" not found`);
  await removeObject(kind, name, target, options, deps);
}

async function writeObject(
  kind: ObjectKind,
  cached: Secret | ConfigMap,
  target: string,
  options: CertSyncOptions,
  deps: CertSyncDeps,
): Promise<void> {
  const found = await readDirectory(deps.files, target);
  if (isUpToDate(found, filesOf(cached, kind, 'cert-syncer'))) return;
  const name = cached.metadata?.name ?? '';
  await asOnlyWriter(options.destinationDir, deps, () => writeLive(kind, name, target, options, deps));
}

async function writeLive(
  kind: ObjectKind,
  name: string,
  target: string,
  { namespace, contentCheck }: CertSyncOptions,
  { kube, files, events, log, signal }: CertSyncDeps,
): Promise<void> {
  const [what, where] = [nounOf(kind), `${namespace}/${name}`];
  let live: Secret | ConfigMap;
  try {
    live = await kube.get(resourceOf(kind), { namespace, name }, { signal });
  } catch (error) {
    events.event('Warning', 'CertificateUpdateFailed', `Failed getting ${what}: ${where}: ${errorText(error)}`);
    throw error;
  }
  try {
    const content = filesOf(live, kind, 'cert-syncer');
    if (isUpToDate(await readDirectory(files, target), content)) return;
    const problem = contentCheck?.(live, what);
    if (problem !== undefined)
      throw new Error(`no process could load ${what} ${where}, so its files stay as they are: ${problem}`);
    await replaceDirectory(files, target, content, 'cert-sync');
  } catch (error) {
    events.event(
      'Warning',
      'CertificateUpdateFailed',
      `Failed writing file for ${what}: ${where}: ${errorText(error)}`,
    );
    throw error;
  }
  // Only now: an event of success after a failure would be a lie (T28).
  log.info({ directory: target }, 'directory written');
  events.event('Normal', 'CertificateUpdated', `Wrote updated ${what}: ${where}`);
}

async function removeObject(
  kind: ObjectKind,
  name: string,
  target: string,
  options: CertSyncOptions,
  deps: CertSyncDeps,
): Promise<void> {
  const { files } = deps;
  const isThere = (await files.linkTarget(target)) !== undefined || (await files.info(target)) !== undefined;
  if (!isThere) return;
  await asOnlyWriter(options.destinationDir, deps, () => removeMissing(kind, name, target, options, deps));
}

async function removeMissing(
  kind: ObjectKind,
  name: string,
  target: string,
  { namespace }: CertSyncOptions,
  { kube, files, events, log, signal }: CertSyncDeps,
): Promise<void> {
  const live = await getIfPresent(kube, resourceOf(kind), { namespace, name }, { signal });
  if (live !== undefined) return;
  try {
    await removeDirectory(files, target, 'cert-sync');
  } catch (error) {
    const text = `Failed removing file for missing ${nounOf(kind)}: ${namespace}/${name}: ${errorText(error)}`;
    events.event('Warning', 'CertificateUpdateFailed', text);
    throw error;
  }
  log.info({ directory: target }, 'directory removed');
  if (kind === 'configmaps') {
    events.event('Normal', 'CertificateRemoved', `Removed file for configmap: ${namespace}/${name}`);
  } else {
    events.event('Warning', 'CertificateRemoved', `Removed file for missing secret: ${namespace}/${name}`);
  }
}

function resourceOf(kind: ObjectKind): Resource<Secret | ConfigMap> {
  return kind === 'secrets' ? SECRETS : CONFIG_MAPS;
}

function nounOf(kind: ObjectKind): 'secret' | 'configmap' {
  return kind === 'secrets' ? 'secret' : 'configmap';
}
