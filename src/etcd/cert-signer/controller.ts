import { errorText } from '../../controller/aggregate-error.ts';
import type { Condition } from '../../controller/condition.ts';
import { type Reconcile, type Result, RetryRequest } from '../../controller/reconcile.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import type { StaticPodOperator } from '../../staticpod/operator.ts';
import { UnreportedFailure } from './failure.ts';
import type { CertSignerDependencies } from './options.ts';
import { syncCertificates } from './sync.ts';

export const CERT_SIGNER_CONDITION = 'EtcdCertSignerControllerDegraded';
/** The safety net below triggers and due times (spec 40, 3.1). */
export const CERT_SIGNER_RESYNC_MS: number = minutes(1);
/** A certificate that is due again as soon as it is made must not spin (spec 40, T-12). */
const SHORTEST_PAUSE_MS = seconds(1);

export interface CertSignerControllerOptions extends Omit<CertSignerDependencies, 'events'> {
  readonly operator: StaticPodOperator;
  readonly events: CertSignerDependencies['events'];
}

/**
 * Keeps all certificates of etcd, and reports how that goes. A lost quorum shows in the condition at whichever of the two
 * checks it is noticed.
 */
export function certSignerReconcile(options: CertSignerControllerOptions): Reconcile {
  const { operator, events, clock } = options;
  const report = async (condition: Condition, signal: AbortSignal) => {
    try {
      await operator.setConditions([condition], signal);
    } catch (error) {
      events.event('Warning', 'EtcdCertSignerControllerUpdatingStatus', errorText(error));
      throw error;
    }
  };
  return async (_key, { signal }): Promise<Result> => {
    let result: Awaited<ReturnType<typeof syncCertificates>>;
    try {
      result = await syncCertificates(options, signal);
    } catch (error) {
      if (error instanceof RetryRequest || error instanceof UnreportedFailure) throw error;
      const condition: Condition = {
        type: CERT_SIGNER_CONDITION,
        status: 'True',
        reason: 'Error',
        message: errorText(error),
      };
      await report(condition, signal).catch(() => {});
      throw error;
    }
    // Nothing was looked at closely enough to say that all is well (spec 40, N-5).
    if (result.phase === 'rolling' || result.phase === 'unmanaged') return {};
    await report({ type: CERT_SIGNER_CONDITION, status: 'False', reason: 'AsExpected' }, signal);
    if (result.until === undefined) return {};
    const earliest = clock.now().getTime() + SHORTEST_PAUSE_MS;
    return { againAt: new Date(Math.max(result.until.getTime(), earliest)) };
  };
}
