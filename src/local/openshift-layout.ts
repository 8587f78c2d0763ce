import { systemClock } from '../kube/clock.ts';
import { systemKeys } from '../pki/keys.ts';
import { embeddedApi } from './cluster-api.ts';
import { provideClusterInputs } from './cluster-inputs.ts';
import { applyDefinitions } from './definitions.ts';
import type { ClusterLayout } from './layout.ts';
import { PARTS } from './parts.ts';

/** OpenShift's: its operators make the files of the nodes. */
export const OPENSHIFT_LAYOUT: ClusterLayout = {
  name: 'openshift',
  labels: role => ({ [`node-role.kubernetes.io/${role === 'worker' ? role : 'master'}`]: '' }),
  parts: PARTS,
  programs: ['etcd', 'kube-apiserver'],
  api: embeddedApi,
  async provide({ api, nodes, parts, dayMs, keyAlgorithm, patiently }) {
    const { kube } = api;
    await patiently(() => applyDefinitions(kube));
    await patiently(() => api.settled());
    const masters = nodes.filter(({ role }) => role === 'control-plane');
    const inputs = {
      kube,
      clock: systemClock,
      keys: systemKeys,
      controlPlane: new Map(masters.map(({ name, address }) => [name, address])),
      keyAlgorithm,
      hasEtcd: parts.some(({ name }) => name === 'etcd'),
      dayMs,
    };
    await patiently(() => provideClusterInputs(inputs));
  },
};
