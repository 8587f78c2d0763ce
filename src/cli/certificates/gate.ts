import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { ISSUER, NOT_BEFORE, REFRESH_PERIOD } from '../../certrotation/annotations.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { decideSignerByAnnotations } from '../../certrotation/signer.ts';
import { chainOfTarget, isNamed } from '../../inventory/known-chains.ts';
import type { HandOverItem } from '../../inventory/model.ts';
import { readObjects } from '../../inventory/read.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import { clusterSource } from '../../inventory/source.ts';
import { days, formatGoDuration, parseGoDuration } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { ObjectName } from '../../kube-apiserver/chains.ts';
import { handOverItems } from '../hand-overs/items.ts';

/** Why a leaf should wait, and who would refuse it. */
export interface Gate {
  readonly because: string;
  /** Those who are known to refuse a leaf that is made now. */
  readonly cutOff: readonly string[];
}

/** What the gate needs to know of a cluster. */
export interface Surroundings {
  readonly secrets: readonly Secret[];
  readonly handOvers: readonly HandOverItem[];
}

/** Where the hand-overs of a cluster stand; verifiers are asked where no operator has noted what they said. */
export async function surroundings(kube: Kube, now: Date): Promise<Surroundings> {
  const source = clusterSource(kube);
  const objects = await readObjects(source, { parts: ['hand-overs'] });
  return { secrets: objects.secrets, handOvers: await handOverItems(objects, source, now, 'missing') };
}

/**
 * The leaves that wait, and why: in the middle of a hand-over a leaf follows by itself when its signer may sign (spec 90, HO-2 and HO-5).
 * Who may not see what that depends on holds all of them back.
 */
export async function heldBack(kube: Kube, leaves: readonly Secret[], now: Date): Promise<Map<Secret, Gate>> {
  if (leaves.length === 0) return new Map();
  let found: Surroundings;
  try {
    found = await surroundings(kube, now);
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== 403) throw error;
    const because = `nobody can tell who has loaded its signer: ${error.message}`;
    return new Map(leaves.map(leaf => [leaf, { because, cutOff: [] }]));
  }
  const gates = leaves.map(leaf => [leaf, gateOf(leaf, found, now)] as const);
  return new Map(gates.filter((entry): entry is [Secret, Gate] => entry[1] !== undefined));
}

/** Why one leaf waits. */
export function gateOf(leaf: Secret, { secrets, handOvers }: Surroundings, now: Date): Gate | undefined {
  const known = chainOfTarget(leaf);
  if (known === undefined) return gateOfForeign(leaf, secrets, now);
  const handOver = handOvers.find(
    ({ operator, metadata }) => operator === known.operator && metadata.name === known.signer.name,
  );
  return handOver && gateOfFamily(handOver);
}

function gateOfFamily(handOver: HandOverItem): Gate | undefined {
  const { metadata, phase, write, because, since, holdsLeaves, waitingFor } = handOver;
  const name = `${metadata.namespace}/${metadata.name}`;
  if (phase === 'Distributing') {
    const when = since === undefined ? '' : ` since ${since}`;
    const text =
      write === 'begin'
        ? `its signer ${name} is about to be replaced (${because}) by one that no verifier has yet`
        : `its signer ${name} is being handed over: Distributing${when}, ${because}`;
    return { because: `${text}; a new leaf follows by itself`, cutOff: [] };
  }
  if (!holdsLeaves) return undefined;
  const who = waitingFor.length === 0 ? because : `not loaded yet by ${waitingFor.join(', ')}`;
  return { because: `its signer ${name}: ${who}; a new leaf follows by itself`, cutOff: waitingFor };
}

/**
 * Of a signer that is in none of our tables nobody knows who verifies: its leaves wait while it is about to be replaced, and until it is a
 * tenth of their refresh time old, as scheduled ones do (spec 10, T-8; spec 70, 9.2).
 */
function gateOfForeign(leaf: Secret, secrets: readonly Secret[], now: Date): Gate | undefined {
  const place = signerNamed(annotationsOf(leaf)[ISSUER] ?? '');
  const signer = place && secrets.find(candidate => isNamed(candidate, place));
  if (place === undefined || signer === undefined) return undefined;
  const name = `${place.namespace}/${place.name}`;
  const due = whySignerIsDue(signer, now);
  if (due !== undefined) {
    return {
      because: `its signer ${name} is about to be replaced (${due}) by one that no verifier has yet`,
      cutOff: [],
    };
  }
  const refreshMs = refreshOf(leaf);
  const notBefore = parseRfc3339(annotationsOf(signer)[NOT_BEFORE] ?? '');
  if (refreshMs === undefined || notBefore === undefined) return undefined;
  const openAt = new Date(floorToMs(notBefore).getTime() + refreshMs / 10);
  if (openAt <= now) return undefined;
  const age = formatGoDuration(Math.floor((now.getTime() - floorToMs(notBefore).getTime()) / 1000) * 1000);
  const because = `its signer ${name} is only ${age} old and may not have reached every verifier before ${openAt.toISOString()}`;
  return { because, cutOff: [] };
}

/** The common name of a signer names its Secret: `<namespace>_<name>@<seconds>`. */
function signerNamed(issuer: string): ObjectName | undefined {
  const [, namespace, name] = /^([^_]+)_(.+)@\d+$/.exec(issuer) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

/** Why the next pass over a signer makes a new one, which the leaf would then get. Looks at no key: there may be none to look at. */
function whySignerIsDue(signer: Secret, now: Date): string | undefined {
  const refreshMs = refreshOf(signer) ?? NO_REFRESH_MS;
  const decision = decideSignerByAnnotations(annotationsOf(signer), { refreshMs, validityMs: refreshMs }, now);
  if (decision.action === 'regenerate') return decision.reason;
  const [certificate] = certificatesIn(dataText(signer, TLS_CERT));
  return certificate !== undefined && now > certificate.notAfter ? 'already expired' : undefined;
}

/** Where nothing says a refresh time, 80 % of the validity comes first. */
const NO_REFRESH_MS = days(36_500);

function refreshOf(secret: Secret): number | undefined {
  return parseGoDuration(annotationsOf(secret)[REFRESH_PERIOD] ?? '');
}
