import { systemClock } from '../kube/clock.ts';
import { VERSION } from '../kube/version.ts';
import { OPERAND_NAMESPACE, OPERATOR_LEASE, OPERATOR_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { runKubeApiserverOperator } from '../kube-apiserver/operator.ts';
import { KUBE_API_SERVERS } from '../kube-apiserver/resources.ts';
import type { OperandProgram } from '../kube-apiserver/target-config/controller.ts';
import { systemKeys } from '../pki/keys.ts';
import type { ClusterPart } from './part.ts';
import { kubeApiserverVersion } from './program-version.ts';
import { RolloutWatch } from './rollout-watch.ts';

/** Programs resolves these names to this program and to kube-apiserver or its stand-in. */
const PROGRAM: OperandProgram = {
  flavor: 'kubernetes',
  image: 'kube-apiserver',
  operatorImage: 'rotunda',
  operatorCommand: ['rotunda'],
  // All nodes share this machine, and the API refuses loopback addresses as endpoints of its own service.
  // A load balancer on the same machine notices within a second that a server is about to end, not within a minute.
  moreFlags: ['--bind-address=$(HOST_IP)', '--endpoint-reconciler-type=none', '--shutdown-delay-duration=5s'],
  version: VERSION,
};
/** What a revision is made of and changes while a cluster comes up. */
const REVISIONED = ['config', 'kube-apiserver-pod', 'etcd-serving-ca'];

/** The kube-apiserver operator in this process, and its static pod on the control-plane nodes. */
export const kubeApiserverPart: ClusterPart = {
  name: 'kube-apiserver',
  async start({ kube, controlPlane, programs, log, changed, lead, ...options }) {
    const rollout = new RolloutWatch({
      kube,
      resource: KUBE_API_SERVERS,
      namespace: OPERAND_NAMESPACE,
      podName: 'kube-apiserver',
      revisioned: REVISIONED,
      controlPlane,
      isStandIn: programs.find('kube-apiserver')?.isStandIn === true,
      changed,
    });
    const operand = await kubeApiserverVersion(programs.find('kube-apiserver'));
    const events = options.events('kube-apiserver-operator', OPERATOR_NAMESPACE);
    const leading = lead(OPERATOR_LEASE, events, (fenced, signal) =>
      runKubeApiserverOperator(
        {
          kube: fenced,
          clock: systemClock,
          keys: systemKeys,
          events,
          log: log.child({ operator: 'kube-apiserver' }),
          program: PROGRAM,
          // Nodes here have no kubelet whose version could be too old.
          versions: { operator: VERSION, operand },
          dayMs: options.dayMs,
          keyAlgorithm: options.keyAlgorithm,
          handOver: options.handOver,
          minReadyMs: options.minReadyMs,
        },
        signal,
      ),
    );
    return { ended: rollout.during(leading.done), state: () => leading.state(rollout.state()) };
  },
};
