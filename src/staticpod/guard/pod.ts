import { createHash } from 'node:crypto';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import type { GuardConfig } from '../config.ts';

export const GUARD_LABELS = { app: 'guard' } as const;

export interface GuardPod {
  readonly namespace: string;
  readonly prefix: string;
  readonly nodeName: string;
  readonly operandIP: string;
  readonly image: string;
  readonly guard: Pick<GuardConfig, 'port' | 'path'>;
}

/**
 * A pod that is ready exactly when the operand on its node is. Static pods cannot be evicted, guards can: a budget over
 * the guards keeps a drain from taking down more operands than the cluster can lose (spec 30, 18.5).
 */
export function guardPod({ namespace, prefix, nodeName, operandIP, image, guard }: GuardPod): Pod {
  return {
    metadata: {
      namespace,
      name: `${prefix}-guard-${nodeName}`,
      labels: GUARD_LABELS,
      annotations: { 'target.workload.openshift.io/management': '{"effect": "PreferredDuringScheduling"}' },
    },
    spec: {
      hostname: hostName(namespace, nodeName),
      nodeName,
      priorityClassName: 'system-cluster-critical',
      terminationGracePeriodSeconds: 3,
      automountServiceAccountToken: false,
      tolerations: [{ operator: 'Exists' }],
      containers: [
        {
          name: 'guard',
          image,
          imagePullPolicy: 'IfNotPresent',
          terminationMessagePolicy: 'FallbackToLogsOnError',
          command: ['/bin/sh'],
          args: ['-c', SLEEP_UNTIL_TERMINATED],
          readinessProbe: {
            httpGet: { scheme: 'HTTPS', host: operandIP, port: guard.port, path: guard.path },
            periodSeconds: 5,
            timeoutSeconds: 5,
            failureThreshold: 3,
            successThreshold: 1,
          },
          resources: { requests: { cpu: '10m', memory: '5Mi' } },
        },
      ],
    },
  };
}

/** A shell runs a trap only between two commands, so the sleep has to be in the background. */
const SLEEP_UNTIL_TERMINATED =
  'trap \'kill "$sleeper"; exit 0\' TERM; while :; do sleep 86400 & sleeper=$!; wait "$sleeper"; done';

/** Short enough for a host name, however long the name of the node is. */
function hostName(namespace: string, nodeName: string): string {
  return `guard-${createHash('sha1').update(`${namespace}-${nodeName}`).digest('hex')}-end`;
}

/** Whether a guard has to be made anew to be like `wanted` (spec 30, 18.6). */
export function isOutdatedGuard(guard: Pod, wanted: Pod): boolean {
  const facts = ({ spec }: Pod) => {
    const container = spec?.containers[0];
    const { host, port, path } = container?.readinessProbe?.httpGet ?? {};
    return JSON.stringify([container?.image, host, String(port), path, spec?.hostname]);
  };
  const phase = guard.status?.phase ?? '';
  return facts(guard) !== facts(wanted) || !['', 'Pending', 'Running'].includes(phase);
}

/** All guards but one have to be ready; with a single node there is nothing to keep (spec 30, 18.3). */
export function guardBudget(
  namespace: string,
  prefix: string,
  controlPlaneNodes: number,
  evictionPolicy: GuardConfig['evictionPolicy'],
): PodDisruptionBudget {
  return {
    metadata: { namespace, name: guardBudgetName(prefix) },
    spec: {
      minAvailable: Math.max(0, controlPlaneNodes - 1),
      selector: { matchLabels: GUARD_LABELS },
      ...(evictionPolicy === undefined ? {} : { unhealthyPodEvictionPolicy: evictionPolicy }),
    },
  };
}

export function guardBudgetName(prefix: string): string {
  return `${prefix}-guard-pdb`;
}
