import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { heldUpBy, isTooLate, type Patience } from '../../hand-over/decide.ts';
import type { Receipt } from '../../hand-over/receipt.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { chainsIn } from '../aggregate.ts';
import { FAMILY_TABLE } from '../cert-table.ts';
import type { NodeLeaf } from '../certificates.ts';
import { decideHandOver, type HandOver, type LeafGate, patienceOf, together } from '../hand-over.ts';
import { FAMILIES, type Family } from '../profile.ts';
import type { Pass } from './pass.ts';
import { certificateOf, type PerFamily, perFamily } from './per-family.ts';
import type { SignerPair } from './signers.ts';

interface Signers {
  readonly inUse: PerFamily<SignerPair | undefined>;
  readonly wanted: PerFamily<SignerPair>;
  readonly leaves: readonly NodeLeaf[];
}

export async function planHandOver(
  pass: Pass,
  { inUse, wanted, leaves }: Signers,
  gate: LeafGate,
): Promise<PerFamily<HandOver>> {
  const { options, rotation, state } = pass;
  const plans = await perFamily(async family => {
    const certificate = certificateOf(wanted[family]);
    const current = inUse[family];
    const question = {
      wanted: certificate,
      inUse: current === undefined ? undefined : certificateOf(current),
      isMeantForUse: wanted[family].isMeantForUse,
      leavesAreOf: leavesAreOf(certificate, family, leaves, state.allCerts),
      mode: options.profile.handOver,
      policy: options.profile.lifetimes.signer,
      now: rotation.clock.now(),
    };
    // Asking everybody is only needed where something depends on the answer.
    const unasked = decideHandOver({ ...question, receipts: [missing('nobody has been asked')] });
    const isPending = unasked.do === 'wait' || (unasked.do === 'promote' && unasked.leftBehind.length > 0);
    const receipts = isPending ? await receiptsOf(pass, family, certificate, gate) : [];
    return decideHandOver({ ...question, receipts });
  });
  return together(plans);
}

async function receiptsOf(
  pass: Pass,
  family: Family,
  signer: Certificate,
  gate: LeafGate = { open: true },
): Promise<readonly Receipt[]> {
  if (pass.isGateOff) return [];
  return gate.open ? pass.trust.receiptsFor(family, signer) : [missing(gate.reason)];
}

/** Those who would refuse what this signer signs: they are waited for, or left behind (spec 90, HO-7). */
export async function whoWaits(pass: Pass, family: Family, signer: Certificate, leaves: readonly NodeLeaf[]) {
  const ofFamily = leaves.filter(({ row }) => row.family === family);
  return mostAreReady(pass, await receiptsOf(pass, family, signer), endsFirst(pass, ofFamily));
}

/**
 * Who is waited for, or left behind (HO-7). Members that refuse each other are no cluster: where most would be left behind, they are waited
 * for, whatever ends.
 */
export function mostAreReady(pass: Pass, receipts: readonly Receipt[], ending: Certificate | undefined) {
  const found = heldUpBy(receipts, ending, patienceIn(pass));
  const isMost = found.leftBehind.length * 2 > receipts.length;
  return isMost ? { waitingFor: found.leftBehind, leftBehind: [] } : found;
}

function missing(why: string): Receipt {
  return { verifier: why, node: undefined, kind: 'started', isLoaded: false, evidence: why, isWaived: false };
}

function leavesAreOf(
  signer: Certificate,
  family: Family,
  leaves: readonly NodeLeaf[],
  aggregate: Secret | undefined,
): 'wanted' | 'other' | 'nobody' {
  const names = leaves.filter(({ row }) => row.family === family).map(({ target }) => target.name);
  const chains = chainsIn(aggregate, names);
  if (chains.length === 0) return 'nobody';
  const isItsOwn = ([leaf]: readonly Certificate[]) =>
    leaf?.authorityKeyId !== undefined &&
    signer.subjectKeyId !== undefined &&
    leaf.authorityKeyId.equals(signer.subjectKeyId);
  return chains.every(isItsOwn) ? 'wanted' : 'other';
}

export function patienceIn({ options, rotation }: Pass): Patience {
  return patienceOf(options.profile.lifetimes.signer, rotation.clock.now());
}

/** The first of these leaves to end, of those that are out there; undefined: there is none. */
export function endsFirst({ state }: Pass, leaves: readonly NodeLeaf[]): Certificate | undefined {
  const names = leaves.map(({ target }) => target.name);
  const found = chainsIn(state.allCerts, names).flatMap(([leaf]) => leaf ?? []);
  return found.toSorted((a, b) => a.notAfter.getTime() - b.notAfter.getTime())[0];
}

interface HeldQuestion {
  readonly gate: LeafGate;
  readonly plans: PerFamily<HandOver>;
  readonly signers: PerFamily<SignerPair | undefined>;
  readonly leaves: readonly NodeLeaf[];
}

/** Why leaves must not change now; undefined: they may. */
export async function whyHeld(pass: Pass, { gate, plans, signers, leaves }: HeldQuestion): Promise<string | undefined> {
  if (pass.isGateOff) return undefined;
  if (!gate.open) return gate.reason;
  const first = endsFirst(pass, leaves);
  const isLate = first !== undefined && isTooLate(first, patienceIn(pass));
  const waiting = FAMILIES.flatMap(family => {
    const plan = plans[family];
    return plan.do === 'wait' ? [`${FAMILY_TABLE[family].signer} waits for ${plan.for.join(', ')}`] : [];
  });
  if (waiting.length > 0 && !isLate) return waiting.join('; ');
  const untrusted = await untrustedSigners(pass, signers, leaves);
  return untrusted.length === 0 ? undefined : untrusted.join('; ');
}

/** A signer that somebody put in place by hand is used only when everybody knows it (spec 40, T-1). */
async function untrustedSigners(
  pass: Pass,
  signers: PerFamily<SignerPair | undefined>,
  leaves: readonly NodeLeaf[],
): Promise<string[]> {
  const found = await perFamily(async family => {
    const pair = signers[family];
    if (pair === undefined) return [];
    const { waitingFor } = await whoWaits(pass, family, certificateOf(pair), leaves);
    const names = waitingFor.map(({ verifier }) => verifier).join(', ');
    return waitingFor.length === 0 ? [] : [`${FAMILY_TABLE[family].signer} in use is unknown to ${names}`];
  });
  return [...found.server, ...found.metrics];
}
