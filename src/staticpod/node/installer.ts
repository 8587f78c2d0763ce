import { dirname, join } from 'node:path';
import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Log } from '../../controller/log.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { Deadline } from '../../kube/deadline.ts';
import { formatGoDuration, seconds } from '../../kube/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NODES, PODS, type Resource, SECRETS } from '../../kube/resource.ts';
import type { ContentCheck } from '../loadable.ts';
import { ensureFile, removeOldTemporaries } from './atomic-write.ts';
import {
  isUpToDate,
  readDirectory,
  recoverDirectories,
  removeDirectory,
  removeUnfinished,
  replaceDirectory,
} from './directory-swap.ts';
import type { Files } from './files.ts';
import type { InstallerOptions } from './installer-options.ts';
import { encodeManifest, MANIFEST_MODE, manifestFiles, readManifest, withUidFor } from './manifest.ts';
import { directoryOf, filesOf, type ObjectKind } from './object-files.ts';
import { assertObjectName } from './plain-name.ts';
import { readObject, retryUntil } from './read-retry.ts';
import { decideSettle, INSTALLER_LABEL, SETTLE_LIMIT_MS, SETTLE_POLL_MS } from './settle.ts';
import { substituteTokens } from './tokens.ts';
import { asOnlyWriter, type TakeLock } from './writers-lock.ts';

export interface InstallerDeps {
  readonly kube: Kube;
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
  /** Taken around the certificates, and around the manifests when the options name a lock file. */
  readonly lock: TakeLock;
  /** What no process could load is not put among the files that a syncer keeps: the last good ones stay. */
  readonly contentCheck?: ContentCheck | undefined;
  /** An operator's last word on a manifest. */
  readonly mutatePod?: ((pod: Pod) => Pod) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Only an old kubelet needs it: the copies must not miss their time for it. */
const KUBELET_VERSION_LIMIT_MS = seconds(10);

/** Brings one revision onto this node (spec 30, section 10). Safe to run again after it was cut off anywhere. */
export async function runInstaller(options: InstallerOptions, deps: InstallerDeps): Promise<void> {
  const { log, events } = deps;
  await settle(options, deps);
  try {
    await copyContent(options, deps);
  } catch (error) {
    const text = errorText(error);
    events.event('Warning', 'StaticPodInstallerFailed', `Installing revision ${options.revision}: ${text}`);
    throw new Error(`failed to copy: ${text}`, { cause: error });
  }
  log.info({ revision: options.revision }, 'revision installed');
  events.event('Normal', 'StaticPodInstallerCompleted', `Successfully installed revision ${options.revision}`);
}

/** Waits until older installers on this node have ended; throws when a newer one is here (spec 30, 10.2). */
export async function settle(options: InstallerOptions, deps: InstallerDeps): Promise<void> {
  const { kube, clock, log, signal } = deps;
  const { namespace, nodeName, revision, settlePauseMs } = options;
  const giveUpAt = new Date(clock.now().getTime() + SETTLE_LIMIT_MS);
  const installers = async () => {
    const pods = await kube.list(PODS, { namespace, labelSelector: INSTALLER_LABEL, signal });
    return pods.items;
  };
  for (;;) {
    let because: string;
    try {
      const decision = decideSettle(await installers().catch(asListFailure), nodeName, revision);
      if (decision.result === 'proceed') break;
      because = decision.because;
    } catch (error) {
      if (!(error instanceof ListFailure)) throw error;
      because = error.message;
    }
    log.info({ because }, 'waiting for other installers');
    if (clock.now().getTime() + SETTLE_POLL_MS > giveUpAt.getTime()) {
      throw new Error(`timed out waiting for other installers on node ${nodeName}: ${because}`);
    }
    await sleep(clock, SETTLE_POLL_MS, signal);
  }
  await sleep(clock, settlePauseMs, signal);
  const deadline = new Date(clock.now().getTime() + SETTLE_LIMIT_MS);
  decideSettle(await retryUntil(clock, deadline, installers, signal), nodeName, revision);
}

/** Writes the revision's files, primes the unrevisioned ones, and puts the manifests in place last (spec 30, 10.3). */
export async function copyContent(options: InstallerOptions, deps: InstallerDeps): Promise<void> {
  const { clock, signal } = deps;
  const { timeoutMs, namespace, revision, pod } = options;
  assertObjectName(`${pod}-${revision}`, 'the name of the revision directory');
  const timeUp = () => new Error(`timed out after ${formatGoDuration(timeoutMs)}`);
  const limit = new Deadline(clock, timeoutMs, signal, timeUp);
  const deadline = new Date(clock.now().getTime() + timeoutMs);
  const copying: Copying = { ...deps, deadline, signal: limit.signal, namespace };
  try {
    const kubeletVersion = await readKubeletVersion(options, copying);
    await copySet(revisionedSet(options), copying);
    const { certDir } = options;
    if (certDir !== undefined) {
      const set = certificateSet(options, certDir, deps.contentCheck);
      // The syncer of the node may be there already, and ahead of what was read before it had to wait.
      await asOnlyWriter(certDir, { ...copying, lock: deps.lock }, () => copySet(set, copying));
    }
    await installManifests(options, kubeletVersion, deps, copying);
  } finally {
    limit.end();
  }
}

function revisionDirectory({ resourceDir, pod, revision }: InstallerOptions): string {
  return join(resourceDir, `${pod}-${revision}`);
}

function revisionedSet(options: InstallerOptions): ObjectSet {
  return {
    directory: revisionDirectory(options),
    suffix: `-${options.revision}`,
    required: { secrets: options.secrets, configmaps: options.configMaps },
    optional: { secrets: options.optionalSecrets, configmaps: options.optionalConfigMaps },
    change: content => substituteTokens(content, options),
  };
}

function certificateSet(options: InstallerOptions, directory: string, check: ContentCheck | undefined): ObjectSet {
  return {
    directory,
    suffix: '',
    required: { secrets: options.certSecrets, configmaps: options.certConfigMaps },
    optional: { secrets: options.optionalCertSecrets, configmaps: options.optionalCertConfigMaps },
    // The certificate syncer writes the same files without replacing anything; the two must agree (T21).
    change: content => content,
    check,
  };
}

async function installManifests(
  options: InstallerOptions,
  kubeletVersion: string,
  { lock: takeLock, mutatePod = pod => pod }: InstallerDeps,
  copying: Copying,
): Promise<void> {
  const { files, clock, log, signal } = copying;
  const { namespace, pod, revision, podManifestDir, podManifestsLockFile: lockFile } = options;
  const name = `${pod}-${revision}`;
  const configMap = await readObject(copying.kube, CONFIG_MAPS, { namespace, name }, copying);
  // All manifests are read before the first one is written: a broken one changes nothing.
  const manifests = manifestFiles(configMap?.data ?? {}, pod).map(({ file, text }) => {
    const substituted = substituteTokens(Buffer.from(text), options).toString();
    const manifest = readManifest(substituted, `manifest ${file} in configmap ${namespace}/${name}`);
    return { file, content: encodeManifest(mutatePod(withUidFor(manifest, kubeletVersion))) };
  });
  await files.makeDirectory(podManifestDir);
  if (lockFile !== undefined) await files.makeDirectory(dirname(lockFile));
  const lock = lockFile === undefined ? undefined : await takeLock(lockFile, signal);
  try {
    signal.throwIfAborted();
    await removeOldTemporaries(files, podManifestDir, clock.now());
    for (const { file, content } of manifests) {
      await ensureFile(files, join(revisionDirectory(options), file), content, MANIFEST_MODE);
      const isNew = await ensureFile(files, join(podManifestDir, file), content, MANIFEST_MODE);
      log.info({ file, isNew }, 'manifest is in place');
    }
  } finally {
    lock?.release();
  }
}

interface ObjectSet {
  readonly directory: string;
  /** What the names of the objects carry behind the names of their directories. */
  readonly suffix: string;
  readonly required: Readonly<Record<ObjectKind, readonly string[]>>;
  readonly optional: Readonly<Record<ObjectKind, readonly string[]>>;
  readonly change: (content: Buffer) => Buffer;
  readonly check?: ContentCheck | undefined;
}

interface Copying {
  readonly kube: Kube;
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  readonly deadline: Date;
  readonly signal: AbortSignal;
  readonly namespace: string;
}

/** Reads all objects of a set, Secrets first, then writes them; nothing is written while one is missing. */
async function copySet(set: ObjectSet, copying: Copying): Promise<void> {
  const { files, log, signal } = copying;
  const read = [...(await readAll(set, 'secrets', copying)), ...(await readAll(set, 'configmaps', copying))];
  await files.makeDirectory(set.directory);
  for (const kind of ['secrets', 'configmaps'] as const) {
    const parent = join(set.directory, kind);
    await recoverDirectories(files, parent);
    await removeUnfinished(files, parent, 'installer');
  }
  for (const { kind, name, object } of read) {
    signal.throwIfAborted();
    const target = directoryOf(set.directory, kind, name);
    if (object === undefined) {
      await removeDirectory(files, target, 'installer');
      continue;
    }
    const content = filesOf(object, kind, 'installer', set.change);
    const found = await readDirectory(files, target);
    if (isUpToDate(found, content)) continue;
    const problem = set.check?.(object, kind === 'secrets' ? 'secret' : 'configmap');
    if (problem !== undefined) {
      const text = `no process could load ${kind} ${name}: ${problem}`;
      if (found === undefined) throw new Error(text);
      log.warn({ directory: target }, `${text}; its files stay as they are`);
      continue;
    }
    await replaceDirectory(files, target, content, 'installer');
    log.info({ directory: target, files: content.size }, 'directory written');
  }
}

interface ReadObject {
  readonly kind: ObjectKind;
  readonly name: string;
  /** Undefined: optional, and not there. */
  readonly object: Secret | ConfigMap | undefined;
}

async function readAll(set: ObjectSet, kind: ObjectKind, copying: Copying): Promise<ReadObject[]> {
  const resource = (kind === 'secrets' ? SECRETS : CONFIG_MAPS) as Resource<Secret | ConfigMap>;
  const read: ReadObject[] = [];
  for (const group of ['required', 'optional'] as const) {
    for (const name of [...new Set(set[group][kind])].sort()) {
      if (group === 'optional' && set.required[kind].includes(name)) continue;
      assertObjectName(name, `the name in ${kind}`);
      const key = { namespace: copying.namespace, name: `${name}${set.suffix}` };
      const object = await readObject(copying.kube, resource, key, { ...copying, optional: group === 'optional' });
      read.push({ kind, name, object });
    }
  }
  return read;
}

async function readKubeletVersion({ nodeName }: InstallerOptions, copying: Copying): Promise<string> {
  try {
    const { kube, clock } = copying;
    const deadline = new Date(clock.now().getTime() + KUBELET_VERSION_LIMIT_MS);
    const node = await readObject(kube, NODES, { name: nodeName }, { ...copying, deadline });
    return node?.status?.nodeInfo?.kubeletVersion ?? '';
  } catch (error) {
    copying.log.warn({ err: error, node: nodeName }, 'the version of the kubelet is not known');
    return '';
  }
}

class ListFailure extends Error {}

function asListFailure(error: unknown): never {
  throw new ListFailure(`cannot list installer pods: ${errorText(error)}`, { cause: error });
}
