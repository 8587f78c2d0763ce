import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { Probe } from '../connectivity/status.ts';

export interface ConnectivityMetrics {
  probed(check: string, probe: Probe): void;
}

const NANOSECONDS_PER_MS = 1_000_000;

/** What the check-endpoints container counts, under the names of 4.16, latencies in nanoseconds as there (spec 20, 9.2). */
export function connectivityMetrics(registry: Registry, component: string): ConnectivityMetrics {
  const registers = [registry];
  const count = new Counter({
    name: 'pod_network_connectivity_check_count',
    help: 'Attempts to reach an endpoint, by outcome.',
    labelNames: ['component', 'checkName', 'targetEndpoint', 'tcpConnect', 'dnsResolve'],
    registers,
  });
  const latency = (part: string, what: string) =>
    new Gauge({
      name: `pod_network_connectivity_check_${part}_latency_gauge`,
      help: `How long ${what} took the last time, in nanoseconds.`,
      labelNames: ['component', 'checkName', 'targetEndpoint'],
      registers,
    });
  const connect = latency('tcp_connect', 'the connection to the endpoint');
  const resolve = latency('dns_resolve', 'the look-up of the name');
  return {
    probed(checkName, { endpoint, dnsMs, connectMs, failure }) {
      const labels = { component, checkName, targetEndpoint: endpoint };
      const dnsResolve = failure?.part === 'dns' ? 'failure' : dnsMs === undefined ? '' : 'success';
      const tcpConnect = failure?.part === 'dns' ? '' : failure === undefined ? 'success' : 'failure';
      count.inc({ ...labels, tcpConnect, dnsResolve });
      if (connectMs !== undefined) connect.set(labels, connectMs * NANOSECONDS_PER_MS);
      if (dnsMs !== undefined) resolve.set(labels, dnsMs * NANOSECONDS_PER_MS);
    },
  };
}
