import { controllerMetrics, createRegistry, type Registry } from '../../src/controller/metrics.ts';
import { agentMetrics } from '../../src/daemon/agent/metrics.ts';
import { expirationMetrics, raftTermMetrics } from '../../src/etcd/metrics.ts';
import { handOverMetrics } from '../../src/hand-over/metrics.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { certificateMetrics } from '../../src/kube-apiserver/metrics/certificates.ts';
import { clusterMetrics, terminationMetrics } from '../../src/kube-apiserver/metrics/cluster.ts';
import { connectivityMetrics } from '../../src/kube-apiserver/metrics/connectivity.ts';
import { operatorMetrics as kubeadmMetrics } from '../../src/kubeadm/operator/metrics.ts';
import { controllerGauges, operatorMetrics } from '../../src/machine-config/metrics.ts';
import { staticPodMetrics } from '../../src/staticpod/metrics.ts';

export interface Metric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** Who registers what: by the name of the program that exports it. */
const PROGRAMS: Record<string, (registry: Registry) => void> = {
  'every program': registry => void controllerMetrics(registry)('X'),
  'both static-pod operators': registry => {
    staticPodMetrics(registry, 'x', () => undefined);
    handOverMetrics(registry, systemClock, () => []);
  },
  'kube-apiserver-operator': registry => {
    certificateMetrics(registry, { report: () => ({ certificates: [], unreadable: [] }), isUp: () => false });
    clusterMetrics(registry, '1', { infrastructure: () => undefined, proxy: () => undefined });
    terminationMetrics(registry);
  },
  'check-endpoints': registry => void connectivityMetrics(registry, 'x'),
  'etcd-operator': registry => {
    expirationMetrics(registry);
    raftTermMetrics(registry);
  },
  'kubeadm-operator': registry => void kubeadmMetrics(registry, systemClock),
  'machine-config-operator': registry => void operatorMetrics(registry),
  'machine-config-controller': registry => void controllerGauges(registry),
  'machine-config-daemon': registry => void agentMetrics(registry, 'x'),
};

/** All metrics the code exports, by program. */
export function exportedMetrics(): ReadonlyMap<string, readonly Metric[]> {
  return new Map(Object.entries(PROGRAMS).map(([program, register]) => [program, metricsOf(register)]));
}

function metricsOf(register: (registry: Registry) => void): Metric[] {
  const registry = createRegistry();
  register(registry);
  return registry.getMetricsAsArray().map(metric => {
    const { name, type, help, labelNames } = metric as unknown as Omit<Metric, 'labels'> & { labelNames: string[] };
    return { name, type, help, labels: labelNames };
  });
}
