import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { Event, Pod } from 'kubernetes-types/core/v1.d.ts';
import { collectGauge } from '../../controller/collected-gauge.ts';
import type { Infrastructure, Proxy } from '../resources.ts';

/** Facts about the cluster, under the names of 4.16 (spec 20, 9.2). */
export function clusterMetrics(
  registry: Registry,
  version: string,
  read: { readonly infrastructure: () => Infrastructure | undefined; readonly proxy: () => Proxy | undefined },
): void {
  collectGauge(registry, {
    name: 'cluster_infrastructure_provider',
    help: 'The platform the cluster runs on; 0 for none.',
    labels: ['type', 'region', 'external'],
    values: () => {
      const { spec, status } = read.infrastructure() ?? {};
      const { type = '', aws, gcp } = status?.platformStatus ?? {};
      if (type === '') return [];
      const region = type === 'None' ? '' : ((aws ?? gcp)?.region ?? '');
      const external = type === 'External' ? (spec?.platformSpec?.external?.platformName ?? '') : '';
      return [[{ type, region, external }, type === 'None' ? 0 : 1]];
    },
  });
  collectGauge(registry, {
    name: 'cluster_proxy_enabled',
    help: 'Whether the cluster goes out through a proxy, by kind.',
    labels: ['type'],
    values: () => {
      const proxy = read.proxy();
      if (proxy === undefined) return [];
      return [
        [{ type: 'http' }, proxy.spec?.httpProxy ? 1 : 0],
        [{ type: 'https' }, proxy.spec?.httpsProxy ? 1 : 0],
        [{ type: 'trusted_ca' }, proxy.spec?.trustedCA?.name ? 1 : 0],
      ];
    },
  });
  collectGauge(registry, {
    name: 'openshift_kube_apiserver_operator_build_info',
    help: 'The version of the operator; always 1.',
    labels: ['version'],
    values: () => [[{ version }, 1]],
  });
}

const TERMINATION_REASONS = new Set([
  'TerminationStart',
  'TerminationPreShutdownHooksFinished',
  'TerminationMinimalShutdownDurationFinished',
  'TerminationStoppedServing',
  'TerminationGracefulTerminationFinished',
]);

/** Hears of pods and events of the operand and counts how its servers end (spec 20, 9.2). */
export interface TerminationMetrics {
  pod(pod: Pod): void;
  event(event: Event): void;
}

export function terminationMetrics(registry: Registry): TerminationMetrics {
  const registers = [registry];
  const times = new Gauge({
    name: 'openshift_kube_apiserver_termination_event_time',
    help: 'When a server last did a step of its termination, in Unix seconds.',
    labelNames: ['name', 'eventName'],
    registers,
  });
  const ends = new Counter({
    name: 'openshift_kube_apiserver_termination_count',
    help: 'How often a server was replaced.',
    labelNames: ['name'],
    registers,
  });
  const late = new Counter({
    name: 'openshift_kube_apiserver_lateconnections_count',
    help: 'How often a server still got connections after it had told that it is going.',
    labelNames: ['name'],
    registers,
  });
  /** By pod: a static pod that is replaced shows only in its time of creation. */
  const created = new Map<string, number>();
  return {
    pod({ metadata }) {
      const { name = '', labels = {}, creationTimestamp } = metadata ?? {};
      const at = Date.parse(creationTimestamp ?? '');
      if (labels.apiserver !== 'true' || Number.isNaN(at)) return;
      const before = created.get(name);
      created.set(name, at);
      if (before === undefined || before === at) return;
      ends.inc({ name });
      times.set({ name, eventName: 'StaticPodRecreated' }, at / 1000);
    },
    event({ involvedObject, reason = '', lastTimestamp, eventTime }) {
      const { kind, name = '' } = involvedObject ?? {};
      if (kind !== 'Pod' || !created.has(name)) return;
      if (reason === 'LateConnections') late.inc({ name });
      const at = Date.parse(lastTimestamp ?? eventTime ?? '');
      if (TERMINATION_REASONS.has(reason) && !Number.isNaN(at)) times.set({ name, eventName: reason }, at / 1000);
    },
  };
}
