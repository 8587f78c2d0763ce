import type { FamilyDecision } from '../../hand-over/decide.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { chainsIn } from '../aggregate.ts';
import { FAMILY_TABLE } from '../cert-table.ts';
import type { NodeLeaf } from '../certificates.ts';
import { decisionOf, type HandOver } from '../hand-over.ts';
import type { Family } from '../profile.ts';
import type { Pass } from './pass.ts';
import { certificateOf, type PerFamily, perFamily } from './per-family.ts';
import type { SignerPair } from './signers.ts';

/** Where the signers of a family stand, for people (spec 90, HO-1). */
export interface FamilyStanding {
  readonly decision: FamilyDecision;
  /** Since when the next one is known; undefined: nobody is waited for. */
  readonly since: Date | undefined;
}

export interface StandingQuestion {
  readonly plans: PerFamily<HandOver>;
  readonly signers: PerFamily<SignerPair | undefined>;
  readonly wanted: PerFamily<SignerPair | undefined>;
  readonly leaves: readonly NodeLeaf[];
  /** Why leaves do not follow. */
  readonly held?: string | undefined;
}

/** Made of what a pass knows already: it costs no request. */
export function standingsOf(pass: Pass, question: StandingQuestion): Promise<PerFamily<FamilyStanding>> {
  return perFamily(async family => standingOf(pass, family, question));
}

function standingOf(
  { state, rotation }: Pass,
  family: Family,
  { plans, signers, wanted, leaves, held }: StandingQuestion,
): FamilyStanding {
  const plan = plans[family];
  const [next, current] = [wanted[family], signers[family] ?? wanted[family]].map(pair => pair && certificateOf(pair));
  const names = leaves.filter(({ row }) => row.family === family).map(({ target }) => target.name);
  const isOther = (name: string) => {
    const [leaf] = chainsIn(state.allCerts, [name])[0] ?? [];
    const issuer = leaf?.authorityKeyId;
    return issuer !== undefined && current?.subjectKeyId !== undefined && !issuer.equals(current.subjectKeyId);
  };
  const published = certificatesIn(state.allBundles?.data?.[FAMILY_TABLE[family].bundleKey]);
  const known = [next, current].flatMap(ca => ca ?? []);
  const now = rotation.clock.now();
  const retiring = published.filter(ca => ca.notAfter > now && !known.some(({ der }) => der.equals(ca.der)));
  return {
    decision: decisionOf(plan, { follow: names.filter(isOther), retiring, held }),
    since: plan.do === 'wait' ? next?.notBefore : undefined,
  };
}
