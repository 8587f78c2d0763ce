import type { Log } from '../../controller/log.ts';
import { readOperatingSystem } from '../../host/os-release.ts';
import type { Host } from '../../host/port.ts';
import { unsupportedPackages } from '../apply/extensions.ts';
import type { AgentMetrics } from './metrics.ts';

/** Counts what does not change while the agent runs (spec 60, 1.6.6). Not knowing it keeps nothing else from its work. */
export async function countMachine(host: Host, metrics: AgentMetrics, log: Log): Promise<void> {
  try {
    const system = await readOperatingSystem(host.files);
    metrics.hostOs(system.prometheusLabel, system.version);
    log.info({ os: system.id, version: system.version, bootId: await host.bootId() }, 'the machine');
    for (const [what, text] of (await host.describe?.()) ?? []) log.info({ what, text }, 'the machine says');
    if (host.os !== undefined) metrics.unsupportedPackages(unsupportedPackages(await host.os.booted()));
  } catch (error) {
    log.warn({ err: error }, 'the operating system could not be looked at');
  }
}
