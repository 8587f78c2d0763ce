import type { HandOverMode } from '../hand-over/sync.ts';
import { isConflict } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import type { KubeObject } from '../kube/resource.ts';
import { CLUSTER, KUBE_API_SERVERS } from './resources.ts';

/** On the operator's own resource: how signers of kube-apiserver are handed over, for whoever wants to know beforehand. */
const HAND_OVER = 'rotunda.dev/hand-over';

/** Other writers of the resource are as busy as this only while something is wrong. */
const MOST_ATTEMPTS = 5;

/** Says how this operator hands over; written only where something else stands. */
export async function noteHandOverMode(kube: Kube, mode: HandOverMode, signal?: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const operator = await kube.get(KUBE_API_SERVERS, CLUSTER, { signal });
    const { annotations } = operator.metadata ?? {};
    if (annotations?.[HAND_OVER] === mode) return;
    const metadata = { ...operator.metadata, annotations: { ...annotations, [HAND_OVER]: mode } };
    try {
      await kube.update(KUBE_API_SERVERS, { ...operator, metadata }, { signal });
      return;
    } catch (error) {
      if (!isConflict(error) || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}

/** What the resource says; where it says nothing, upstream's operator looks after the cluster, which knows the clock only. */
export function handOverModeOf(operator: KubeObject | undefined): HandOverMode {
  return operator?.metadata?.annotations?.[HAND_OVER] === 'receipts' ? 'receipts' : 'clock';
}
