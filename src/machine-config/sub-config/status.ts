import type { Condition } from '../../controller/condition.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { SubConfig, SubConfigStatus } from '../../machine-config-api/machine-config.ts';

/** The history is for people; the last entry is what counts (spec 50, 2.4). */
const LONGEST_HISTORY = 10;

/** The status after a sync: success, or the error of it. A repeated outcome is not told twice. */
export function syncedStatus(
  { metadata = {}, status = {} }: SubConfig,
  error: string | undefined,
  now: Date,
): SubConfigStatus {
  const lastTransitionTime = formatRfc3339(now);
  const condition: Condition =
    error === undefined
      ? { type: 'Success', status: 'True', message: 'Success', lastTransitionTime }
      : { type: 'Failure', status: 'False', message: `Error: ${error}`, lastTransitionTime };
  const before = status.conditions ?? [];
  const last = before.at(-1);
  const isSame = last?.type === condition.type && last.message === condition.message;
  return {
    ...status,
    observedGeneration: metadata.generation ?? 0,
    conditions: isSame ? before : [...before, condition].slice(-LONGEST_HISTORY),
  };
}
