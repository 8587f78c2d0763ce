import type { Probe } from 'kubernetes-types/core/v1.d.ts';
import { type Clock, sleep } from '../kube/clock.ts';
import { type ProbeTarget, probeOnce, probeTiming } from './probe.ts';

/** What the probes of one run of a container find out. */
export interface ProbeListener {
  started(): void;
  ready(isReady: boolean): void;
  /** The container must be killed and, if its policy says so, started again. */
  failed(kind: 'Startup' | 'Liveness', message: string): void;
  unhealthy(kind: ProbeKind, message: string): void;
}

export type ProbeKind = 'Startup' | 'Liveness' | 'Readiness';

/** The first pause of somebody who looks forward to a first success; doubled up to the longest, or the period of the probe. */
const EAGER_MS = 50;
const LONGEST_EAGER_MS = 500;

/** Runs the probes of a container until `signal` aborts: liveness and readiness wait for startup. */
export async function runProbes(
  target: ProbeTarget,
  listener: ProbeListener,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { startupProbe, livenessProbe, readinessProbe } = target.container;
  try {
    if (startupProbe !== undefined) {
      const hasStarted = await watchProbe('Startup', startupProbe, target, listener, clock, signal, () => 'done');
      if (!hasStarted) return;
    }
    listener.started();
    if (readinessProbe === undefined) listener.ready(true);
    const watching: Promise<unknown>[] = [];
    if (livenessProbe !== undefined) {
      watching.push(watchProbe('Liveness', livenessProbe, target, listener, clock, signal, () => 'go on'));
    }
    if (readinessProbe !== undefined) {
      const report = (isReady: boolean) => {
        listener.ready(isReady);
        return 'go on' as const;
      };
      watching.push(watchProbe('Readiness', readinessProbe, target, listener, clock, signal, report));
    }
    await Promise.all(watching);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/**
 * Looks again and again. True when `report` said that it is enough, false when a probe failed that means the end of the run.
 * Until the first success it looks more often than it has to, also before the initial delay is over; those looks can only bring
 * good news.
 */
async function watchProbe(
  kind: ProbeKind,
  probe: Probe,
  target: ProbeTarget,
  listener: ProbeListener,
  clock: Clock,
  signal: AbortSignal,
  report: (isGood: boolean) => 'done' | 'go on',
): Promise<boolean> {
  const { initialDelayMs, periodMs, successThreshold, failureThreshold } = probeTiming(probe);
  let [successes, failures, eagerMs] = [0, 0, EAGER_MS];
  let hasSucceeded = false;
  let nextCountsAt = clock.now().getTime() + initialDelayMs;
  for (;;) {
    const result = await probeOnce(probe, target, signal);
    signal.throwIfAborted();
    const now = clock.now().getTime();
    const counts = now >= nextCountsAt;
    if (counts) nextCountsAt = now + periodMs;
    if (result.success) {
      hasSucceeded = true;
      [successes, failures] = [successes + 1, 0];
      if (successes >= successThreshold && report(true) === 'done') return true;
    } else if (counts) {
      [successes, failures] = [0, failures + 1];
      listener.unhealthy(kind, result.message);
      if (failures >= failureThreshold) {
        if (kind !== 'Readiness') {
          listener.failed(kind, result.message);
          return false;
        }
        report(false);
      }
    }
    const pauseMs = hasSucceeded ? periodMs : Math.min(eagerMs, Math.max(0, nextCountsAt - now));
    eagerMs = Math.min(2 * eagerMs, LONGEST_EAGER_MS);
    await sleep(clock, pauseMs, signal);
  }
}
