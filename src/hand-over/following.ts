import { GATE_OVERRIDE, NOT_AFTER } from '../certrotation/annotations.ts';
import type { CertCreator } from '../certrotation/creator.ts';
import { regenerate } from '../certrotation/decision.ts';
import { annotationsOf } from '../certrotation/secret.ts';
import { signerChanged } from '../certrotation/signer-change.ts';
import { seconds } from '../kube/duration.ts';
import { parseRfc3339 } from '../kube/time.ts';
import type { FamilyDecision } from './decide.ts';

/** A leaf that waits is looked at again after this long at the earliest. */
const AGAIN_MS = seconds(1);

/** Reasons to make a leaf anew that wait as long as somebody would refuse the new one; without any of the others nobody accepts the old one. */
const CAN_WAIT = new Set(['D-1', 'D-2', 'D-3', 'D-4', 'T-4', 'T-5', 'T-6', 'H-1']);

/** A leaf that another signer has signed follows at once, or stays as it is, whatever upstream's clock says (HO-2). */
export function followingSigner(creator: CertCreator, leaves: FamilyDecision['leaves']): CertCreator {
  return {
    ...creator,
    decide: question => {
      const byRules = creator.decide(question);
      const { secret, signer, now } = question;
      const reason = secret && signerChanged(secret, signer, now);
      if (secret === undefined || reason === undefined) return byRules;
      if (leaves === 'follow') return byRules.action === 'keep' ? regenerate('HO-2', reason) : byRules;
      const annotations = annotationsOf(secret);
      const isForced =
        annotations[GATE_OVERRIDE] !== undefined && parseRfc3339(annotations[NOT_AFTER] ?? '') === undefined;
      if (isForced || byRules.action === 'fail' || (byRules.action === 'regenerate' && !CAN_WAIT.has(byRules.rule)))
        return byRules;
      return {
        action: 'keep',
        until: new Date(now.getTime() + AGAIN_MS),
        nextRule: 'HO-2',
        nextReason: reason,
      };
    },
  };
}
