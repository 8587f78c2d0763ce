import { resolve } from 'node:path';
import { CONTROL_PLANE_LABEL } from '../../kubeadm/names.ts';
import type { ClusterLayout } from '../layout.ts';
import { copyAdmin } from './admin-copy.ts';
import { agentsPart } from './agents-part.ts';
import { kubeadmApi } from './api.ts';
import { controlPlanePart } from './control-plane-part.ts';
import { foundCluster } from './founding.ts';
import { type Kubelets, kubeletsPart } from './kubelets-part.ts';
import { provideObjects } from './objects.ts';
import { operatorPart } from './operator-part.ts';

/** kubeadm's: nodes have their files from the beginning, and nobody but the kubelet renews them before the cluster is adopted. */
export function kubeadmLayout(dir: string): ClusterLayout {
  const kubelets: Kubelets = new Map();
  return {
    name: 'kubeadm',
    labels: role => (role === 'control-plane' ? { [CONTROL_PLANE_LABEL]: '' } : {}),
    parts: [controlPlanePart(() => resolve(dir)), kubeletsPart(kubelets), operatorPart, agentsPart(kubelets)],
    programs: ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'],
    api: kubeadmApi,
    async found(founding) {
      await foundCluster(founding);
      const [first] = founding.nodes;
      if (first !== undefined) await copyAdmin(founding.dir, first.root);
    },
    async provide({ api, patiently, ...founding }) {
      await patiently(() => provideObjects(api.kube, founding));
      await patiently(() => api.settled());
    },
  };
}
