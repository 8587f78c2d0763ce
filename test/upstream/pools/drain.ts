import { drainVerdict } from '../../../src/machine-config/drain/filter.ts';
import { plain, unlike } from '../difference.ts';
import { judged } from '../judged.ts';
import type { Random } from '../random.ts';

const OWN_NAMESPACE = 'openshift-machine-config-operator';
const CRITICAL = 'scheduler.alpha.kubernetes.io/critical-pod';

interface Input {
  Pods: ReturnType<typeof pod>[];
  DaemonSets: { metadata: { name: string; namespace: string } }[];
}

/** Which pods a drain evicts. */
export const DRAIN = judged<Input>({
  name: 'drain',
  program: 'mcodiff',
  op: 'drain',
  generate: r => ({
    Pods: r.times(6, index => pod(r, index)),
    DaemonSets: r.some([
      { metadata: { name: 'd0', namespace: 'a' } },
      { metadata: { name: 'd1', namespace: 'a' } },
      { metadata: { name: 'd0', namespace: OWN_NAMESPACE } },
    ]),
  }),
  compare: ({ Pods, DaemonSets }, { out, err }) => {
    if (err !== undefined) return [{ class: `upstream: ${plain(err)}`, mine: undefined, theirs: err }];
    const evicted = new Set(out as string[]);
    const hasDaemonSet = (namespace: string, name: string) =>
      DaemonSets.some(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    return Pods.flatMap(candidate => {
      const { annotations, labels, namespace, name } = candidate.metadata;
      const kind = Object.hasOwn(annotations, CRITICAL)
        ? 'a critical pod'
        : Object.entries(labels).some(([, app]) => app === 'machine-config-daemon')
          ? 'the daemon itself'
          : 'a pod';
      const mine = drainVerdict(candidate, hasDaemonSet).evict;
      return unlike(`${kind} is evicted`, mine, evicted.has(`${namespace}/${name}`));
    });
  },
});

function pod(r: Random, index: number) {
  return {
    metadata: {
      name: `p${index}`,
      namespace: r.pick(['a', 'b', OWN_NAMESPACE]),
      uid: `u${index}`,
      labels: { ...(r.chance(0.2) && { 'k8s-app': r.pick(['machine-config-daemon', 'x']) }) },
      annotations: {
        ...(r.chance(0.15) && { 'kubernetes.io/config.mirror': r.pick(['', 'x']) }),
        ...(r.chance(0.1) && { [CRITICAL]: '' }),
      },
      ...(r.chance(0.7) && {
        ownerReferences: [
          {
            apiVersion: 'apps/v1',
            kind: r.pick(['DaemonSet', 'ReplicaSet', 'Job']),
            name: r.pick(['d0', 'd1']),
            uid: 'x',
            controller: r.chance(0.9),
          },
        ],
      }),
      ...(r.chance(0.1) && { deletionTimestamp: '2024-01-01T00:00:00Z', finalizers: ['x'] }),
    },
    spec: {
      nodeName: 'n',
      containers: [{ name: 'c', image: 'i' }],
      ...(r.chance(0.2) && { volumes: [{ name: 'v', emptyDir: {} }] }),
      ...(r.chance(0.1) && { priorityClassName: r.pick(['system-node-critical', 'system-cluster-critical']) }),
    },
    status: { phase: r.pick(['Running', 'Pending', 'Succeeded', 'Failed', 'Running']) },
  };
}
