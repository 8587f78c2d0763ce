import type { Deployment } from 'kubernetes-types/apps/v1.d.ts';
import { systemClock } from '../../kube/clock.ts';
import { Informer } from '../../kube/informer.ts';
import { DEPLOYMENTS } from '../../kube/resource.ts';
import { OPERATOR, userName } from '../../kubeadm/adopt/accounts.ts';
import { ROTUNDA_NAMESPACE } from '../../kubeadm/names.ts';
import { OPERATOR_LEASE } from '../../kubeadm/operator/names.ts';
import { kubeadmOperator } from '../../kubeadm/operator/operator.ts';
import type { Leading } from '../leading.ts';
import type { LocalNode } from '../node.ts';
import type { ClusterPart, PartContext } from '../part.ts';
import { hostPod } from './host-pod.ts';
import { accountIdentity } from './identity.ts';
import { whileAsked } from './while-asked.ts';

/** The operator in this process, as long as its Deployment asks for it: adoption makes that, and release takes it away. */
export const operatorPart: ClusterPart = {
  name: OPERATOR,
  async start(context) {
    const { kube, signal, changed } = context;
    const key = { namespace: ROTUNDA_NAMESPACE, name: OPERATOR };
    const deployments = new Informer<Deployment>(kube, DEPLOYMENTS, { selection: { namespace: ROTUNDA_NAMESPACE } });
    deployments.subscribe({ add: changed, update: changed, delete: changed });
    const isAsked = () => (deployments.get(key)?.spec?.replicas ?? 0) > 0;
    let leading: Leading | undefined;
    const work = async () => {
      deployments.start();
      try {
        await whileAsked(isAsked, signal, async until => {
          await operate(context, until, begun => {
            leading = begun;
            changed();
          });
          leading = undefined;
          changed();
        });
      } finally {
        await deployments.stop();
      }
    };
    return {
      ended: work(),
      state: () =>
        leading?.state({ ready: true, text: 'keeps the certificates' }) ?? {
          ready: !isAsked(),
          text: isAsked() ? 'starting' : 'not asked for: the cluster is not adopted',
        },
    };
  },
};

async function operate(context: PartContext, signal: AbortSignal, begun: (leading: Leading) => void): Promise<void> {
  const events = context.events(OPERATOR, ROTUNDA_NAMESPACE);
  const [first] = context.controlPlane as [LocalNode, ...LocalNode[]];
  const pod = await hostPod(context, { app: OPERATOR, name: `${OPERATOR}-${first.name}`, node: first, signal });
  const kube = await context.patiently(() => context.as(accountIdentity(userName(OPERATOR), first.name)));
  const work = (fenced: typeof kube, until: AbortSignal) =>
    kubeadmOperator({ kube: fenced, clock: systemClock, events, log: pod.log }).run(until);
  const leading = context.lead(OPERATOR_LEASE, events, work, { kube, signal });
  begun(leading);
  try {
    await leading.done;
  } finally {
    await pod.end();
  }
}
