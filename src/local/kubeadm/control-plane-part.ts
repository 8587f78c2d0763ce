import { join } from 'node:path';
import { aborted } from '../../kube/aborted.ts';
import { seconds } from '../../kube/duration.ts';
import { Informer } from '../../kube/informer.ts';
import { PODS } from '../../kube/resource.ts';
import { STATIC_POD_NAMESPACE } from '../../kubeadm/names.ts';
import { COMPONENTS } from '../../kubeadm/node/sight.ts';
import { FileWatch } from '../file-watch.ts';
import type { LocalNode } from '../node.ts';
import type { ClusterPart } from '../part.ts';
import { copyAdmin } from './admin-copy.ts';

const RECHECK_MS = seconds(10);

/** The static pods of the control plane, which the nodes run; and the administrator's kubeconfig of the cluster, which follows the first node's. */
export function controlPlanePart(dir: () => string): ClusterPart {
  return {
    name: 'control-plane',
    async start({ kube, controlPlane, signal, changed, log }) {
      const pods = new Informer(kube, PODS, { selection: { namespace: STATIC_POD_NAMESPACE } });
      pods.subscribe({ add: changed, update: changed, delete: changed });
      const [first] = controlPlane as [LocalNode, ...LocalNode[]];
      const copy = () =>
        void copyAdmin(dir(), first.root).catch((err: unknown) =>
          log.warn({ err }, 'the kubeconfig could not be copied'),
        );
      const watch = new FileWatch([join(first.root, 'etc/kubernetes/admin.conf')], copy, RECHECK_MS);
      const work = async () => {
        pods.start();
        watch.start();
        await aborted(signal);
        watch.stop();
        await pods.stop();
      };
      return {
        ended: work(),
        state: () => {
          const silent = controlPlane.flatMap(node =>
            COMPONENTS.filter(component => !isReady(node, component)).map(component => `${component} on ${node.name}`),
          );
          const all = controlPlane.length * COMPONENTS.length;
          return silent.length === 0
            ? { ready: true, text: `${all} static pods are ready on ${controlPlane.length} nodes` }
            : { ready: false, text: `waiting for ${silent.length} of ${all} static pods, ${silent[0]} among them` };
        },
      };
    },
  };
}

function isReady(node: LocalNode, component: string): boolean {
  const { conditions = [] } = node.runner(STATIC_POD_NAMESPACE, `${component}-${node.name}`)?.status() ?? {};
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}
