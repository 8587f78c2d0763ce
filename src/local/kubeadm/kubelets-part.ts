import { aborted } from '../../kube/aborted.ts';
import type { ClusterPart } from '../part.ts';
import { KubeletStandIn } from './kubelet.ts';

/** The kubelets of a cluster by the names of their nodes. */
export type Kubelets = Map<string, KubeletStandIn>;

/** One on every node that is on. */
export function kubeletsPart(kubelets: Kubelets): ClusterPart {
  return {
    name: 'kubelets',
    async start({ nodes, signal, log, changed }) {
      const work = Promise.all(
        nodes.map(node =>
          node.power.whileOn(signal, async on => {
            const kubelet = new KubeletStandIn(node, log, changed);
            await kubelet.start();
            kubelets.set(node.name, kubelet);
            await aborted(on);
            kubelets.delete(node.name);
            await kubelet.stop();
            changed();
          }),
        ),
      );
      return {
        ended: work.then(() => {}),
        state: () => {
          const letIn = [...kubelets.values()].filter(({ isLetIn }) => isLetIn).length;
          const wanted = nodes.filter(({ power }) => power.isOn).length;
          const off = nodes.length - wanted;
          return {
            ready: letIn === wanted,
            text: `${letIn} of ${wanted} let in by kube-apiserver${off === 0 ? '' : `, ${off} off`}; stand-ins for their ports and certificates`,
          };
        },
      };
    },
  };
}
