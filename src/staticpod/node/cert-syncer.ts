import { createHash } from 'node:crypto';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { Controller } from '../../controller/controller.ts';
import type { Log } from '../../controller/log.ts';
import { onChange } from '../../controller/trigger.ts';
import { aborted } from '../../kube/aborted.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { minutes } from '../../kube/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { Informer } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { unloadable } from '../loadable.ts';
import { readIfThere } from './atomic-write.ts';
import { type CertSyncOptions, prepareDestination, syncCertificates } from './cert-sync.ts';
import type { Files } from './files.ts';
import { FlagError, parseFlags } from './flags.ts';
import type { NamedObject } from './object-files.ts';
import type { TakeLock } from './writers-lock.ts';

export interface CertSyncerOptions extends CertSyncOptions {
  /** Watched: when it changes the program ends, to be started anew with the new one. */
  readonly kubeconfig?: string | undefined;
  readonly tlsServerName?: string | undefined;
}

export interface CertSyncerDeps {
  readonly kube: Kube;
  readonly files: Files;
  readonly lock: TakeLock;
  readonly clock: Clock;
  readonly log: Log;
  /** About the pod of the program. */
  readonly events: EventRecorder;
}

/** What an operator has mirrored to the disk; compiled in, as upstream. */
export interface UnrevisionedLists {
  readonly configMaps: readonly NamedObject[];
  readonly secrets: readonly NamedObject[];
}

const KUBECONFIG_POLL_MS = 500;
/** Below the watches every object is compared with the disk this often; it costs no request (upstream: 10 min). */
const RESYNC_MS = minutes(1);

const FLAGS = {
  'destination-dir': 'text',
  namespace: 'text',
  kubeconfig: 'text',
  'tls-server-name-override': 'text',
} as const;

export function parseCertSyncerOptions(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  lists: UnrevisionedLists,
): CertSyncerOptions {
  const flags = parseFlags(argv, FLAGS);
  const namespace = flags.namespace || env.POD_NAMESPACE;
  if (!flags['destination-dir']) throw new FlagError('--destination-dir is required');
  if (!namespace) throw new FlagError('--namespace is required');
  return {
    namespace,
    destinationDir: flags['destination-dir'],
    configMaps: lists.configMaps,
    secrets: lists.secrets,
    contentCheck: unloadable,
    kubeconfig: flags.kubeconfig || undefined,
    tlsServerName: flags['tls-server-name-override'] || undefined,
  };
}

/** Mirrors objects to the disk until `signal` aborts or the kubeconfig changes; says which of the two it was. */
export async function runCertSyncer(
  options: CertSyncerOptions,
  deps: CertSyncerDeps,
  signal: AbortSignal,
): Promise<'stopped' | 'kubeconfig changed'> {
  const { kube, files, lock, clock, log, events } = deps;
  await prepareDestination(options, files);
  const selection = { namespace: options.namespace };
  const onError = (error: unknown) => log.warn({ err: error }, 'watching failed');
  const configMaps = new Informer<ConfigMap>(kube, CONFIG_MAPS, { selection, clock, onError });
  const secrets = new Informer<Secret>(kube, SECRETS, { selection, clock, onError });
  const { namespace } = options;
  const recorder = events.withComponent('cert-sync-controller');
  const controller = new Controller({
    name: 'CertSyncController',
    clock,
    log,
    events,
    resyncMs: RESYNC_MS,
    triggers: [onChange(configMaps), onChange(secrets)],
    reconcile: async (_, context) => {
      const cached = (kind: 'secrets' | 'configmaps', name: string) =>
        (kind === 'secrets' ? secrets : configMaps).get({ namespace, name });
      await syncCertificates(options, { kube, cached, files, lock, log, events: recorder, signal: context.signal });
    },
  });
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);
  const kubeconfigChanged = watchFile(options.kubeconfig, files, clock, either).then(changed => {
    ended.abort(new Error('the kubeconfig has changed'));
    return changed;
  });
  configMaps.start();
  secrets.start();
  try {
    await controller.run(either);
  } finally {
    ended.abort();
    await Promise.all([configMaps.stop(), secrets.stop()]);
  }
  return (await kubeconfigChanged) ? 'kubeconfig changed' : 'stopped';
}

/** Resolves with true when the content of a file changes, appears or goes away; with false when `signal` aborts (spec 30, 11.1). */
async function watchFile(path: string | undefined, files: Files, clock: Clock, signal: AbortSignal): Promise<boolean> {
  if (path === undefined) {
    await aborted(signal);
    return false;
  }
  const before = await digestOf(files, path);
  while (!signal.aborted) {
    await sleep(clock, KUBECONFIG_POLL_MS, signal).catch(() => {});
    if (!signal.aborted && (await digestOf(files, path)) !== before) return true;
  }
  return false;
}

async function digestOf(files: Files, path: string): Promise<string | undefined> {
  const content = await readIfThere(files, path).catch(() => undefined);
  return content && createHash('sha256').update(content).digest('hex');
}
