import { decide, type FamilyDecision, type FamilyQuestion } from '../../hand-over/decide.ts';
import type { Receipt } from '../../hand-over/receipt.ts';

/** The rules that can be left out, to see that somebody is refused without them. */
export const REMOVABLE = {
  'HO-2': 'a signer signs without asking who has loaded it',
  'HO-3': 'a CA leaves the bundle without a look at who shows what it has signed',
  'HO-10': 'a receipt outlives the process that gave it',
  'W-1': 'what was decided is written although somebody else has written since',
} as const;

export type RemovableRule = keyof typeof REMOVABLE;

/** How the family of the model is looked after: by the real `decide`, unless a rule is left out. */
export interface Rules {
  decide(question: FamilyQuestion): FamilyDecision;
  /** Before a CA is taken away somebody looks at who still needs it. */
  readonly isLookedBeforeRemoval: boolean;
  /** The receipts of a machine end when another one takes its place. */
  readonly doReceiptsEnd: boolean;
  /** A write is refused when its object has changed since the decision. */
  readonly areWritesOptimistic: boolean;
}

export function rulesWithout(removed: RemovableRule | undefined): Rules {
  return {
    decide: removed === 'HO-2' ? withoutReceipts : removed === 'HO-3' ? withoutLooking : decide,
    isLookedBeforeRemoval: removed !== 'HO-3',
    doReceiptsEnd: removed !== 'HO-10',
    areWritesOptimistic: removed !== 'W-1',
  };
}

function withoutReceipts(question: FamilyQuestion): FamilyDecision {
  return decide({ ...question, receipts: ca => everybodyHas(question.receipts(ca)) });
}

function withoutLooking(question: FamilyQuestion): FamilyDecision {
  return decide({ ...question, presenters: () => everybodyHas(question.presenters()) });
}

function everybodyHas(receipts: readonly Receipt[] | undefined): Receipt[] | undefined {
  return receipts?.map(receipt => ({ ...receipt, isLoaded: true }));
}
