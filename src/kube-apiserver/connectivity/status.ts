import { setCondition } from '../../controller/condition.ts';
import { formatGoDuration } from '../../kube/duration.ts';
import type { RecordedEvent } from '../../kube/events.ts';
import type { ConnectivityLogEntry, ConnectivityOutage, ConnectivityStatus } from '../resources.ts';

/** One attempt to reach an endpoint. */
export interface Probe {
  readonly at: Date;
  readonly endpoint: string;
  /** How long the name took to resolve; absent where there was none to resolve. */
  readonly dnsMs?: number | undefined;
  readonly connectMs?: number | undefined;
  /** What went wrong, and in which part. */
  readonly failure?: { readonly part: 'dns' | 'connect'; readonly message: string } | undefined;
}

const MOST_ENTRIES = 10;
const MOST_OUTAGES = 20;
const MOST_OUTAGE_LOGS = 5;

/** The status with one more attempt in it, newest first, and what people should hear of it. */
export function withProbe(
  status: ConnectivityStatus,
  probe: Probe,
  target: string,
): { status: ConnectivityStatus; events: Omit<RecordedEvent, 'component'>[] } {
  const entry = entryOf(probe, target);
  const isFailure = probe.failure !== undefined;
  const logs: ConnectivityStatus = isFailure
    ? { ...status, failures: newest(entry, status.failures, MOST_ENTRIES) }
    : { ...status, successes: newest(entry, status.successes, MOST_ENTRIES) };
  const [current, ...past] = status.outages ?? [];
  const isOut = current !== undefined && current.end === undefined;
  const events: Omit<RecordedEvent, 'component'>[] = [];
  let outages: readonly ConnectivityOutage[] = status.outages ?? [];
  if (isFailure && !isOut) {
    const started = {
      start: entry.time,
      startLogs: [entry],
      endLogs: [entry],
      message: `Connectivity outage detected at ${entry.time}`,
    };
    outages = [started, ...outages];
    events.push({
      type: 'Warning',
      reason: 'ConnectivityOutageDetected',
      message: `Connectivity outage detected: ${entry.message}`,
    });
  } else if (isFailure && isOut) {
    outages = [goingOn(current, entry), ...past];
  } else if (isOut) {
    const lasted = formatGoDuration(probe.at.getTime() - Date.parse(current.start));
    const message = `Connectivity restored after ${lasted}`;
    outages = [
      { ...current, end: entry.time, endLogs: newest(entry, current.endLogs, MOST_OUTAGE_LOGS), message },
      ...past,
    ];
    events.push({ type: 'Normal', reason: 'ConnectivityRestored', message: `${message}: ${entry.message}` });
  }
  const reachable = isFailure
    ? { type: 'Reachable', status: 'False', reason: entry.reason, message: entry.message }
    : { type: 'Reachable', status: 'True', reason: 'TCPConnectSuccess', message: entry.message };
  const conditions = setCondition(status.conditions ?? [], reachable as Parameters<typeof setCondition>[1], probe.at);
  return { status: { ...logs, outages: outages.slice(0, MOST_OUTAGES), conditions }, events };
}

/** Whether the endpoint was reached the last time anybody looked; undefined before that. */
export function isReachable({ conditions = [] }: ConnectivityStatus): boolean | undefined {
  const found = conditions.find(({ type }) => type === 'Reachable');
  return found === undefined ? undefined : found.status === 'True';
}

/** The first failures that differ and the last ones are kept. */
function goingOn(outage: ConnectivityOutage, entry: ConnectivityLogEntry): ConnectivityOutage {
  const { startLogs = [], endLogs = [] } = outage;
  const isNews = startLogs.length < MOST_OUTAGE_LOGS && startLogs[0]?.message !== entry.message;
  return {
    ...outage,
    startLogs: isNews ? [entry, ...startLogs] : startLogs,
    endLogs: newest(entry, endLogs, MOST_OUTAGE_LOGS),
  };
}

function entryOf({ at, endpoint, dnsMs, connectMs, failure }: Probe, target: string): ConnectivityLogEntry {
  const time = at.toISOString();
  if (failure === undefined) {
    const message = `${target}: tcp connection to ${endpoint} succeeded`;
    return { time, success: true, reason: 'TCPConnect', message, latency: latencyOf(connectMs) };
  }
  if (failure.part === 'dns') {
    const message = `${target}: failure looking up the host of ${endpoint}: ${failure.message}`;
    return { time, success: false, reason: 'DNSError', message, latency: latencyOf(dnsMs) };
  }
  const message = `${target}: failed to establish a TCP connection to ${endpoint}: ${failure.message}`;
  return { time, success: false, reason: 'TCPConnectError', message, latency: latencyOf(connectMs) };
}

function latencyOf(milliseconds = 0): string {
  return formatGoDuration(Math.round(milliseconds));
}

function newest<T>(entry: T, entries: readonly T[] = [], most: number): readonly T[] {
  return [entry, ...entries].slice(0, most);
}
