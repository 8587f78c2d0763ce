import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { dataText, TLS_CERT } from '../certrotation/secret.ts';
import { factsOf } from '../inventory/certificate-facts.ts';
import { certificatesIn, Relations } from '../inventory/relations.ts';
import { objectText } from '../trust/object.ts';
import type { PlanEvent } from './model.ts';
import type { PlanObjects } from './objects.ts';

/** Signers that are named; the rest is counted. */
const MOST_NAMED = 3;

/**
 * What the algorithm of the cluster's keys means for a hand-back: OpenShift 4.16 signs with RSA whatever key its signer has, so it cannot
 * renew what another signer has signed, and nobody hears of it before something is due. Undefined where all signers are RSA.
 */
export function handBackNote(
  { secrets, configMaps }: Pick<PlanObjects, 'secrets' | 'configMaps'>,
  events: readonly PlanEvent[],
): string | undefined {
  const relations = new Relations(secrets, configMaps);
  const signers = secrets.filter(secret => relations.role(secret) === 'signer' && !isRsa(secret));
  if (signers.length === 0) return undefined;
  const leaves = secrets.filter(secret => {
    const signer = relations.role(secret) === 'target' ? relations.signerOfTarget(secret) : undefined;
    return signer !== undefined && signers.includes(signer.secret);
  });
  const names = new Set(leaves.map(nameOf));
  const first = events.find(
    ({ change, object }) => change === 'certificate' && object !== undefined && names.has(objectText(object)),
  );
  const named = signers.slice(0, MOST_NAMED).map(nameOf).join(', ');
  const more = signers.length > MOST_NAMED ? ` and ${signers.length - MOST_NAMED} more` : '';
  const due =
    first === undefined ? 'none of them is due before the end of this plan' : `the first is due at ${first.at}`;
  return (
    `signers whose keys are not RSA: ${named}${more}; OpenShift 4.16 signs with RSA only and, after a hand-back, could not renew ` +
    `the ${leaves.length} certificates that they have signed (${due})`
  );
}

function isRsa(signer: Secret): boolean {
  const [certificate] = certificatesIn(dataText(signer, TLS_CERT));
  return certificate === undefined || factsOf(certificate).key.toLowerCase().startsWith('rsa');
}

function nameOf({ metadata }: Secret): string {
  return objectText({ kind: 'Secret', namespace: metadata?.namespace ?? '', name: metadata?.name ?? '' });
}
