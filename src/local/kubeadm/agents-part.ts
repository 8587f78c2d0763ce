import type { DaemonSet } from 'kubernetes-types/apps/v1.d.ts';
import { localHost } from '../../host/local.ts';
import { HttpKube } from '../../kube/client.ts';
import { sleep, systemClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { Informer } from '../../kube/informer.ts';
import { AGENT, CONTROL_PLANE_AGENT, userName } from '../../kubeadm/adopt/accounts.ts';
import { DAEMON_SETS } from '../../kubeadm/adopt/objects.ts';
import { CERTIFICATES_DIRECTORY, ROTUNDA_NAMESPACE } from '../../kubeadm/names.ts';
import { nodeAccess } from '../../kubeadm/node/access.ts';
import { KubeadmAgent } from '../../kubeadm/node/agent.ts';
import { askServer } from '../../kubeadm/node/ask.ts';
import { KUBELET_UNIT, placesOf } from '../../kubeadm/node/places.ts';
import { systemKeys } from '../../pki/keys.ts';
import type { LocalNode } from '../node.ts';
import { provideServices } from '../operating-system.ts';
import type { ClusterPart, PartContext } from '../part.ts';
import { hostPod } from './host-pod.ts';
import { accountIdentity } from './identity.ts';
import type { Kubelets } from './kubelets-part.ts';
import { whileAsked } from './while-asked.ts';

const RESTART_PAUSE_MS = seconds(1);
const SERVICES = ['containerd', 'kubelet'];

/** An agent in this process for every node for which a DaemonSet asks: adoption makes those, and release takes them away. */
export function agentsPart(kubelets: Kubelets): ClusterPart {
  return {
    name: 'kubeadm-agents',
    async start(context) {
      const { kube, nodes, controlPlane, signal, changed } = context;
      const sets = new Informer<DaemonSet>(kube, DAEMON_SETS, { selection: { namespace: ROTUNDA_NAMESPACE } });
      sets.subscribe({ add: changed, update: changed, delete: changed });
      const workloadOf = (node: LocalNode) => (controlPlane.includes(node) ? CONTROL_PLANE_AGENT : AGENT);
      const isAsked = (node: LocalNode) =>
        sets.get({ namespace: ROTUNDA_NAMESPACE, name: workloadOf(node) }) !== undefined;
      const running = new Set<LocalNode>();
      const work = async () => {
        sets.start();
        try {
          await Promise.all(
            nodes.map(node =>
              node.power.whileOn(signal, on =>
                whileAsked(
                  () => isAsked(node),
                  on,
                  async until => {
                    running.add(node);
                    changed();
                    await runAgent(node, workloadOf(node), kubelets, context, until);
                    running.delete(node);
                    changed();
                  },
                ),
              ),
            ),
          );
        } finally {
          await sets.stop();
        }
      };
      return {
        ended: work(),
        state: () => {
          const asked = nodes.filter(node => node.power.isOn && isAsked(node)).length;
          const text =
            asked === 0 ? 'not asked for: the cluster is not adopted' : `${running.size} of ${asked} at work`;
          return { ready: running.size >= asked, text };
        },
      };
    },
  };
}

/** With the rights that its account has, and again when it failed. */
async function runAgent(
  node: LocalNode,
  workload: typeof AGENT | typeof CONTROL_PLANE_AGENT,
  kubelets: Kubelets,
  context: PartContext,
  signal: AbortSignal,
): Promise<void> {
  const pod = await hostPod(context, { app: workload, name: `${workload}-${node.name}`, node, signal });
  const { log } = pod;
  const host = localHost({
    root: node.root,
    async onService(verb, unit) {
      if (unit === KUBELET_UNIT && verb === 'restart') await kubelets.get(node.name)?.restart();
    },
  });
  await provideServices(host, SERVICES);
  const kube = await context.patiently(() => context.as(accountIdentity(userName(workload), node.name)));
  const nodeKube = new HttpKube(nodeAccess({ files: host.files }), { fieldManager: workload });
  try {
    while (!signal.aborted) {
      try {
        const agent = new KubeadmAgent({
          kube,
          nodeKube,
          host,
          nodeName: node.name,
          places: placesOf(CERTIFICATES_DIRECTORY),
          keys: systemKeys,
          ask: askServer,
          clock: systemClock,
          log,
          events: context.events(workload, ROTUNDA_NAMESPACE),
        });
        await agent.run(signal);
      } catch (err) {
        if (signal.aborted) return;
        log.warn({ err }, 'the agent failed');
        await sleep(systemClock, RESTART_PAUSE_MS, signal).catch(() => {});
      }
    }
  } finally {
    await nodeKube.close();
    await pod.end();
  }
}
