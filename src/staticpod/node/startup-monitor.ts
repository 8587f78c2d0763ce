import { dirname, join } from 'node:path';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Log } from '../../controller/log.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { type FallbackOptions, fallBack, markLastKnownGood } from './fallback.ts';
import type { Files } from './files.ts';
import { FlagError, parseFlags } from './flags.ts';
import type { Lock } from './lock-file.ts';
import { readManifest } from './manifest.ts';

export interface StartupMonitorOptions extends FallbackOptions {
  readonly nodeName: string;
  readonly fallbackTimeoutMs: number;
  readonly installerLockFile?: string | undefined;
  readonly kubeconfig?: string | undefined;
  readonly logFilePath?: string | undefined;
}

export interface Readiness {
  readonly ready: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface StartupMonitorDeps {
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  /** The operator's judgement whether this revision of the operand works. */
  readonly isReady: (revision: number, signal: AbortSignal) => Promise<Readiness>;
  /** Tells the operator resource that the node has reached the revision. */
  readonly promote: (nodeName: string, revision: number) => Promise<void>;
  readonly lock: (path: string, signal: AbortSignal) => Promise<Lock>;
}

export type MonitorOutcome = 'good' | 'fell back' | 'nothing to fall back to';

const PROBE_INTERVAL_MS = seconds(1);
const FALLBACK_TIMEOUT_MS = seconds(33);

const FLAGS = {
  kubeconfig: 'text',
  revision: 'integer',
  'fallback-timeout-duration': 'duration',
  'resource-dir': 'text',
  'manifests-dir': 'text',
  'target-name': 'text',
  'installer-lock-file': 'text',
  'node-name': 'text',
  'log-file-path': 'text',
} as const;

/** Reads the flags of upstream's startup monitor (spec 30, 17.1). */
export function parseStartupMonitorOptions(argv: readonly string[]): StartupMonitorOptions {
  const flags = parseFlags(argv, FLAGS);
  if (flags['fallback-timeout-duration'] === 0) throw new FlagError('--fallback-timeout-duration cannot be 0');
  for (const name of ['resource-dir', 'manifests-dir', 'target-name', 'node-name'] as const) {
    if (!flags[name]) throw new FlagError(`--${name} is required`);
  }
  return {
    targetName: flags['target-name'] as string,
    revision: flags.revision ?? 0,
    resourceDir: flags['resource-dir'] as string,
    manifestsDir: flags['manifests-dir'] as string,
    nodeName: flags['node-name'] as string,
    fallbackTimeoutMs: flags['fallback-timeout-duration'] ?? FALLBACK_TIMEOUT_MS,
    installerLockFile: flags['installer-lock-file'] || undefined,
    kubeconfig: flags.kubeconfig || undefined,
    logFilePath: flags['log-file-path'] || undefined,
  };
}

/**
 * Watches the own revision until it is ready or the time is up, then makes it the one to return to, or returns to the last one
 * that was. Ends by removing the own manifest. Rejects, with nothing changed, when it cannot tell or is told to stop.
 */
export async function runStartupMonitor(
  options: StartupMonitorOptions,
  deps: StartupMonitorDeps,
  signal: AbortSignal,
): Promise<MonitorOutcome> {
  const { files, log } = deps;
  const { readiness, lock } = await watchRevision(options, deps, signal);
  try {
    let outcome: MonitorOutcome = 'good';
    if (readiness.ready) {
      await markLastKnownGood(files, options);
      await deps.promote(options.nodeName, options.revision);
    } else {
      outcome = (await fallBack(files, options, readiness)) ? 'fell back' : 'nothing to fall back to';
    }
    log.info({ revision: options.revision, outcome, reason: readiness.reason }, 'startup monitor is done');
    signal.throwIfAborted();
    await files.remove(join(options.manifestsDir, `${options.targetName}-startup-monitor-pod.yaml`));
    await files.flushDirectory(options.manifestsDir);
    return outcome;
  } finally {
    lock?.release();
  }
}

/** The lock is held when this resolves, and not when it rejects. */
async function watchRevision(
  options: StartupMonitorOptions,
  deps: StartupMonitorDeps,
  signal: AbortSignal,
): Promise<{ readiness: Readiness; lock: Lock | undefined }> {
  const { clock, log, files } = deps;
  if (options.installerLockFile !== undefined) await files.makeDirectory(dirname(options.installerLockFile));
  const lastProbeAt = clock.now().getTime() + options.fallbackTimeoutMs - PROBE_INTERVAL_MS;
  for (;;) {
    signal.throwIfAborted();
    const isLast = clock.now().getTime() >= lastProbeAt;
    const lock = options.installerLockFile && (await deps.lock(options.installerLockFile, signal));
    let keep = false;
    try {
      const readiness = await probe(options, deps, signal);
      if (readiness.ready || isLast) {
        keep = true;
        return { readiness, lock: lock || undefined };
      }
      log.debug({ reason: readiness.reason, detail: readiness.message }, 'not ready yet');
    } catch (error) {
      // Not knowing is never a reason to fall back.
      if (isLast || signal.aborted) throw error;
      log.warn({ why: errorText(error) }, 'cannot tell whether the revision is ready');
    } finally {
      if (!keep && lock) lock.release();
    }
    await sleep(clock, PROBE_INTERVAL_MS, signal);
  }
}

async function probe(
  options: StartupMonitorOptions,
  deps: StartupMonitorDeps,
  signal: AbortSignal,
): Promise<Readiness> {
  const { manifestsDir, targetName, revision } = options;
  const path = join(manifestsDir, `${targetName}-pod.yaml`);
  const pod = readManifest((await deps.files.readFile(path)).toString(), path);
  const label = pod.metadata?.labels?.revision ?? '';
  if (!/^\d{1,10}$/.test(label) || Number(label) !== revision) {
    throw new Error(`expected ${path} to carry the label revision ${revision}, found ${JSON.stringify(label)}`);
  }
  return deps.isReady(revision, signal);
}
