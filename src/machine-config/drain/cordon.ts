import { errorText } from '../../controller/aggregate-error.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { isNotFound } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES } from '../../kube/resource.ts';

/** Pauses between the five tries (spec 50, 9.2). */
const PAUSES_MS = [seconds(10), seconds(20), seconds(40), seconds(80)];

/** Makes a node take pods or not, and makes sure of it. Annotations are written along. Throws when five tries were in vain. */
export async function setSchedulable(
  kube: Kube,
  name: string,
  isSchedulable: boolean,
  annotations: Readonly<Record<string, string | null>>,
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal },
): Promise<void> {
  const body = { metadata: { annotations }, spec: { unschedulable: isSchedulable ? null : true } };
  for (let tries = 1; ; tries++) {
    let why: string;
    try {
      await kube.patch(NODES, { name }, { type: 'merge', body }, { signal });
      const { spec } = await kube.get(NODES, { name }, { signal });
      if ((spec?.unschedulable === true) !== isSchedulable) return;
      why = 'somebody else changed it back';
    } catch (error) {
      if (isNotFound(error)) throw error;
      why = errorText(error);
    }
    const pause = PAUSES_MS[tries - 1];
    if (pause === undefined)
      throw new Error(`node ${name}: failed to ${isSchedulable ? 'uncordon' : 'cordon'} (${tries} tries): ${why}`);
    await sleep(clock, pause, signal);
  }
}
