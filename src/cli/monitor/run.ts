import { CLUSTER_OPERATORS } from '../../controller/cluster-operator-status.ts';
import { LiveSource } from '../../inventory/live-source.ts';
import { sleep, systemClock } from '../../kube/clock.ts';
import { CONFIG_MAPS, EVENTS, NODES, resource, SECRETS } from '../../kube/resource.ts';
import { MACHINE_CONFIG_POOLS } from '../../machine-config-api/machine-config.ts';
import { withCluster } from '../cluster.ts';
import { namespaceFrom, positiveDurationFrom } from '../cluster-flags.ts';
import { untilStopped } from '../signals.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import { type Happening, happeningsOf } from './changes.ts';
import type { MonitorFlags } from './command.ts';
import { LEFT_BEHIND } from './hand-overs.ts';

const OPERATORS = ['KubeAPIServer', 'Etcd', 'KubeControllerManager', 'KubeScheduler'].map(kind =>
  resource('operator.openshift.io/v1', kind, `${kind.toLowerCase()}s`, false),
);

/** Prints what happens until it is told to stop. */
export async function runMonitor(flags: MonitorFlags): Promise<void> {
  if (flags.output !== 'text' && flags.output !== 'json') {
    throw new UsageError(`--output must be text or json, found "${flags.output}"`);
  }
  const namespace = namespaceFrom(flags);
  const timeoutMs = flags.timeout === undefined ? undefined : positiveDurationFrom('--timeout', flags.timeout);
  await withCluster(flags, async ({ kube, server }) => {
    const stopped = untilStopped();
    let isQuiet = false;
    const source = new LiveSource(kube, error => {
      // A server that restarts is gone for a moment: told once, until something arrives again.
      if (!isQuiet) process.stderr.write(`connection lost, trying again: ${visible((error as Error).message)}\n`);
      isQuiet = true;
    });
    source.subscribe(change => {
      isQuiet = false;
      for (const happening of happeningsOf(change)) process.stdout.write(lineOf(happening, flags.output, new Date()));
    });
    const timer = new AbortController();
    try {
      await Promise.all([
        source.list(SECRETS, { namespace }),
        source.list(CONFIG_MAPS, { namespace }),
        source.list(EVENTS, { fieldSelector: `reason=${LEFT_BEHIND}` }),
        ...[NODES, CLUSTER_OPERATORS, MACHINE_CONFIG_POOLS, ...OPERATORS].map(kind => source.list(kind)),
      ]);
      process.stderr.write(`watching ${server}; stop with Ctrl-C\n`);
      const over = timeoutMs === undefined ? [] : [sleep(systemClock, timeoutMs, timer.signal).catch(() => {})];
      await Promise.race([stopped, ...over]);
    } finally {
      timer.abort();
      await source.stop();
    }
  });
}

function lineOf({ what, object, namespace, text }: Happening, format: string, now: Date): string {
  const time = now.toISOString();
  if (format === 'json') return `${JSON.stringify({ time, what, object, namespace, text })}\n`;
  return `${visible(`${time.slice(0, 19)}Z ${what.padEnd(26)} ${object}${namespace === undefined ? '' : ` in ${namespace}`}: ${text}`)}\n`;
}
