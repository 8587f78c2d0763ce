import { DESIRED_CONFIG, DESIRED_IMAGE } from '../../machine-config-api/names.ts';
import { readStored } from '../apply/stored.ts';
import { isSameTarget, type Target } from '../decide/update-needed.ts';
import { announce, announcements } from './announcements.ts';
import { driftSubject } from './disk-check.ts';
import { uncordonNode } from './drain.ts';
import type { AgentParts } from './parts.ts';

/**
 * Ends an update: what the disk says is the state that was reached (spec 60, 10.4). In the wanted one the node is uncordoned, Done and
 * watched for drift; false: another one is wanted by now, and the next update follows without uncordoning in between.
 */
export async function complete(parts: AgentParts): Promise<boolean> {
  const { host, node, events, log, report, metrics, clock, configs } = parts;
  const stored = await readStored(host);
  if (stored === undefined) throw new Error('expected a config on disk at the end of an update, found none');
  const name = stored.config.metadata?.name ?? '';
  const reached: Target = { config: name, image: stored.image };
  if (!isSameTarget(reached, wantedBy(node.annotations()))) {
    log.info({ reached: name }, 'another config is wanted by now');
    return false;
  }
  log.info({ config: name }, `Completing update to target ${name}`);
  await uncordonNode(parts, name);
  announce(events, announcements.uncordon(name));
  log.info({ config: name }, `Update completed for config ${name} and node has been successfully uncordoned`);
  announce(events, announcements.nodeDone(node.name, name));
  await report.done({ currentConfig: name, currentImage: reached.image, desiredImage: reached.image });
  metrics.updated(name, '', clock.now());
  log.info({ config: name }, `In desired state ${name}`);
  configs.forget();
  await startDriftMonitor(parts);
  parts.atRest?.();
  return true;
}

/** Watches what is on disk from now on; at most one monitor runs (spec 60, 11.2). */
export async function startDriftMonitor({ host, drift, events, metrics }: AgentParts): Promise<void> {
  const stored = await readStored(host);
  if (stored === undefined) return;
  metrics.drift(undefined);
  const subject = await driftSubject(host, stored.config);
  await drift.start(subject);
  announce(events, announcements.driftMonitorStarted(subject.config));
}

export async function stopDriftMonitor({ drift, events, report }: AgentParts): Promise<void> {
  if (!(await drift.stop())) return;
  announce(events, announcements.driftMonitorStopped());
  report.handOverDrift();
}

/** What the node controller wants this node to be in. */
export function wantedBy(annotations: Readonly<Record<string, string>>): Target {
  return { config: annotations[DESIRED_CONFIG] ?? '', image: annotations[DESIRED_IMAGE] ?? '' };
}
