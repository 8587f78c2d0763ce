import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client';
import type { QueueObserver } from './queue.ts';

export { Registry } from '@prometheus-io/client';

/** What a controller counts of itself. */
export interface ControllerMetrics {
  readonly queue: QueueObserver;
  passed(outcome: 'success' | 'retry' | 'error', durationMs: number): void;
}

const PASS_SECONDS = [0.005, 0.02, 0.1, 0.5, 2, 10, 30, 60, 300];

/** The metrics of all controllers of a process, under the names that dashboards for Kubernetes know. */
export function controllerMetrics(registry: Registry): (controller: string) => ControllerMetrics {
  const registers = [registry];
  const passes = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Passes by controller and result.',
    labelNames: ['controller', 'result'],
    registers,
  });
  const errors = new Counter({
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Passes that failed.',
    labelNames: ['controller'],
    registers,
  });
  const times = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'How long passes take.',
    labelNames: ['controller'],
    buckets: PASS_SECONDS,
    registers,
  });
  const depth = new Gauge({ name: 'workqueue_depth', help: 'Keys that wait.', labelNames: ['name'], registers });
  const adds = new Counter({ name: 'workqueue_adds_total', help: 'Keys added.', labelNames: ['name'], registers });
  const retries = new Counter({ name: 'workqueue_retries_total', help: 'Retries.', labelNames: ['name'], registers });
  return controller => {
    const byName = { name: controller };
    errors.inc({ controller }, 0);
    return {
      queue: {
        added: () => adds.inc(byName),
        retried: () => retries.inc(byName),
        depth: keys => depth.set(byName, keys),
      },
      passed(outcome, durationMs) {
        passes.inc({ controller, result: outcome });
        if (outcome === 'error') errors.inc({ controller });
        times.observe({ controller }, durationMs / 1000);
      },
    };
  };
}

/** A registry of its own for each process, so that nothing is counted globally. */
export function createRegistry(): Registry {
  return new Registry();
}
