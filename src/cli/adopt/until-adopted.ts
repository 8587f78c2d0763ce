import type { Kube } from '../../kube/port.ts';
import { adoptionState } from './missing.ts';
import { type PatienceOptions, untilTrue } from './patience.ts';
import { readAdoption } from './sight.ts';

/** Waits until the operator says that the cluster is adopted; gives what it says. Throws the differences of KA-1, and when the time is over. */
export function untilAdopted(kube: Kube, options: PatienceOptions): Promise<string> {
  return untilTrue(options, async () => {
    const state = adoptionState(await readAdoption(kube, options.signal), new Date());
    if (state.kind === 'adopted') return { done: state.message };
    if (state.kind === 'waiting') return { missing: state.missing };
    throw new Error(
      [
        'the nodes do not agree; nothing was copied or changed on them:',
        ...state.differences.map(text => `- ${text}`),
        'run the same command again when that is mended, or rotunda release kubeadm',
      ].join('\n'),
    );
  });
}
