/** On the Secret of the next signer: since when it is handed over, why, and who has loaded it. */
export const SINCE = 'rotunda.dev/hand-over-since';
export const BECAUSE = 'rotunda.dev/hand-over-because';
export const RECEIPTS = 'rotunda.dev/hand-over-receipts';
/** On the same Secret: the signer it was made beside, by its digest. */
export const BESIDE = 'rotunda.dev/hand-over-beside';
/** On the same Secret: somebody has taken the hand-over back, and when (HO-6). */
export const TAKEN_BACK = 'rotunda.dev/hand-over-taken-back';
/** On the Secret of the signer: somebody wants the one before it back, and when (HO-6). */
export const TURNED_ROUND = 'rotunda.dev/hand-over-turned-round';
/** On the Secret of the signer: how long its last hand-over took. */
export const TOOK = 'rotunda.dev/hand-over-took';
/** On the same Secret: the signer, by its digest, of which everybody has been seen to show leaves; and who shows what, until then. */
export const SHOWN = 'rotunda.dev/hand-over-shown';
export const PRESENTERS = 'rotunda.dev/hand-over-presenters';
/** On a Node: nobody waits for what runs there, since then (HO-7). */
export const WAIVED = 'rotunda.dev/hand-over-waived';
