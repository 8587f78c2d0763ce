import { aborted } from '../../kube/aborted.ts';
import { minutes } from '../../kube/duration.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { statusOf } from '../../kubeadm/cluster-record.ts';
import { KUBEADM_CONFIG } from '../../kubeadm/names.ts';
import type { ClusterPart, PartState } from '../../local/part.ts';
import { install } from '../adopt/install.ts';
import { planAdoption } from '../adopt/plan.ts';
import { readAdoption } from '../adopt/sight.ts';
import { untilAdopted } from '../adopt/until-adopted.ts';

/** On ConfigMap kubeadm-config: this cluster was adopted by its own start once. Whoever released it since did so on purpose. */
const ADOPTED_AT_START = 'rotunda.dev/adopted-at-start';
/** What a container of a local node needs no more of than its name. */
export const LOCAL_IMAGE = 'rotunda';
const PATIENCE_MS = minutes(10);

/** Adopts a cluster at its first start, as `rotunda adopt kubeadm` does; a cluster that has been through it is left as it is. */
export function adoptionPart(isWanted: boolean): ClusterPart {
  return {
    name: 'adoption',
    async start({ kube, signal, changed, patiently, log }) {
      let state: PartState = { ready: false, text: 'looking' };
      const say = (ready: boolean, text: string) => {
        state = { ready, text };
        changed();
      };
      const work = async () => {
        const isDue = isWanted && !(await patiently(() => wasAdopted(kube)));
        if (isDue) {
          await patiently(() => adopt(kube, signal));
          const options = { signal, timeoutMs: PATIENCE_MS, onProgress: (text: string) => say(false, text) };
          await untilAdopted(kube, options);
          await patiently(() => note(kube));
        }
        const status = statusOf((await patiently(() => readAdoption(kube, signal))).record);
        say(true, status?.adopted ? 'adopted' : `not adopted: rotunda adopt kubeadm --image ${LOCAL_IMAGE} --yes`);
      };
      const ended = work().catch((err: unknown) => {
        if (signal.aborted) return;
        log.error({ err }, 'the cluster could not be adopted');
        say(false, err instanceof Error ? err.message : String(err));
      });
      return { ended: ended.then(() => aborted(signal)), state: () => state };
    },
  };
}

async function adopt(kube: Kube, signal: AbortSignal): Promise<void> {
  const planned = planAdoption(await readAdoption(kube, signal), { image: LOCAL_IMAGE });
  if ('refusal' in planned) throw new Error(planned.refusal);
  await install(kube, planned.plan, { signal, onChange: () => {} });
}

async function wasAdopted(kube: Kube): Promise<boolean> {
  const { metadata } = await kube.get(CONFIG_MAPS, KUBEADM_CONFIG);
  return metadata?.annotations?.[ADOPTED_AT_START] !== undefined;
}

async function note(kube: Kube): Promise<void> {
  const body = { metadata: { annotations: { [ADOPTED_AT_START]: 'true' } } };
  await kube.patch(CONFIG_MAPS, KUBEADM_CONFIG, { type: 'merge', body });
}
