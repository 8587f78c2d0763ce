import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';

/** What a kubelet takes where nobody says otherwise. */
export const DEFAULT_MOST_PODS = 110;
const KUBELET_CONF = 'etc/kubernetes/kubelet.conf';

/** How many pods a node takes: `maxPods` of its kubelet's configuration. */
export function podLimit(root: string): number {
  try {
    const { maxPods } = (load(readFileSync(join(root, KUBELET_CONF), 'utf8')) ?? {}) as { maxPods?: unknown };
    return Number.isSafeInteger(maxPods) && (maxPods as number) > 0 ? (maxPods as number) : DEFAULT_MOST_PODS;
  } catch {
    // A machine before its first boot has none; a broken one would keep a real kubelet from starting.
    return DEFAULT_MOST_PODS;
  }
}
