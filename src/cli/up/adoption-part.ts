import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { aborted } from '../../kube/aborted.ts';
import { minutes } from '../../kube/duration.ts';
import { Informer } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { CLUSTER_RECORD, statusOf } from '../../kubeadm/cluster-record.ts';
import { KUBEADM_CONFIG, PKI_NAMESPACE } from '../../kubeadm/names.ts';
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
      const selection = { namespace: PKI_NAMESPACE };
      const records = new Informer<ConfigMap>(kube, CONFIG_MAPS, { selection });
      records.subscribe({ add: changed, update: changed, delete: changed });
      let doing: string | undefined = 'looking whether it is adopted';
      const say = (text: string | undefined) => {
        doing = text;
        changed();
      };
      const adoptOnce = async () => {
        if (!isWanted || (await patiently(() => wasAdopted(kube)))) return;
        await patiently(() => adopt(kube, signal));
        const onProgress = (text: string) => say(`waiting: ${text}`);
        await untilAdopted(kube, { signal, timeoutMs: PATIENCE_MS, onProgress });
        await patiently(() => note(kube));
      };
      const work = async () => {
        records.start();
        try {
          await adoptOnce();
          say(undefined);
        } catch (err) {
          log.error({ err }, 'the cluster could not be adopted');
          say(err instanceof Error ? err.message : String(err));
        }
        await aborted(signal);
        await records.stop();
      };
      return {
        ended: work(),
        state: () => (doing === undefined ? stateOf(records.get(CLUSTER_RECORD)) : { ready: false, text: doing }),
      };
    },
  };
}

function stateOf(record: ConfigMap | undefined): PartState {
  const status = statusOf(record);
  if (record === undefined)
    return { ready: true, text: `not adopted: rotunda adopt kubeadm --image ${LOCAL_IMAGE} --yes` };
  return { ready: true, text: status?.adopted ? 'adopted' : (status?.message ?? 'asked for') };
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
