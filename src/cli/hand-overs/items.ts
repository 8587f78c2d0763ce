import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { RotationUnit } from '../../certrotation/config.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { rotationDayFrom } from '../../forecast/units.ts';
import { decide, type FamilyDecision, type FamilyQuestion, signedSince, waitsUntil } from '../../hand-over/decide.ts';
import { Evidence } from '../../hand-over/evidence.ts';
import { type Family, type FamilyObjects, familiesOf, nextKey, previousKey, sightOf } from '../../hand-over/family.ts';
import { BECAUSE, PRESENTERS, RECEIPTS, SINCE } from '../../hand-over/names.ts';
import { notedReceipts, type Receipt, type Receipts } from '../../hand-over/receipt.ts';
import { type Means, verifiersOf } from '../../hand-over/verifiers.ts';
import { byPlace, metadataOf } from '../../inventory/certificates.ts';
import { isNamed } from '../../inventory/known-chains.ts';
import type { HandOverItem, ReceiptItem } from '../../inventory/model.ts';
import type { PublicSecret } from '../../inventory/public-secret.ts';
import { type InventoryObjects, readObjects } from '../../inventory/read.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import { clusterSource, type ObjectSource } from '../../inventory/source.ts';
import type { Kube } from '../../kube/port.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { ObjectName } from '../../kube-apiserver/chains.ts';
import { hostnameSources } from '../../kube-apiserver/rotation/follow-hostnames.ts';
import { rotationUnits } from '../../kube-apiserver/rotation/units.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import type { Certificate } from '../../pki/certificate.ts';
import type { TrustGraph } from '../../trust/graph.ts';
import { secret as secretRef } from '../../trust/object.ts';
import { SERVER_DAY_MS, serverUnit } from '../certificates/server-hand-over.ts';
import { etcdHandOvers } from './etcd.ts';
import { isByReceipts, sourcesFrom } from './evidence.ts';
import { isUnderWay } from './words.ts';

/**
 * `notes`: what operators have noted, and nothing else; `missing`: verifiers are asked from here where no operator has noted anything;
 * `everybody`: they are asked in any case.
 */
export type Asking = 'notes' | 'missing' | 'everybody';

/** Where the hand-over of every signer stands: `decide` over the objects, with what verifiers have said (spec 90, HO-1). */
export async function handOverItems(
  objects: InventoryObjects,
  source: ObjectSource,
  now: Date,
  asking: Asking = 'notes',
): Promise<HandOverItem[]> {
  const dayMs = rotationDayFrom(objects);
  const units = rotationUnits({ dayMs, hostnames: hostnameSources() });
  const graph = kubeApiserverTrust();
  const isThere = ({ signer }: Family) => objects.secrets.some(secret => isNamed(secret, signer));
  const byOperator: Sight = {
    objects,
    operator: 'kube-apiserver',
    isByReceipts: isByReceipts(objects),
    verifiers: family => verifiersIn(graph, family),
    evidence: new Evidence(sourcesFrom(objects, source, units, graph)),
    dayMs,
    now,
    asking,
  };
  const byCommand: Sight = { ...byOperator, ...SERVER_SIGHT };
  const items = await Promise.all([
    ...familiesOf(units)
      .filter(isThere)
      .map(family => itemOf(family, byOperator)),
    ...familiesOf([serverUnit([])])
      .filter(isThere)
      .map(async family => asCommanded(await itemOf(family, byCommand))),
  ]);
  const all = [...items, ...(await etcdHandOvers(objects, dayMs, now))];
  // What is under way is what somebody looks for.
  return all.toSorted((a, b) => Number(isUnderWay(b)) - Number(isUnderWay(a)) || byPlace(a, b));
}

/** The same over a cluster. */
export async function readHandOvers(kube: Kube, now: Date, asking?: Asking): Promise<HandOverItem[]> {
  const source = clusterSource(kube);
  return handOverItems(await readObjects(source, { parts: ['hand-overs'] }), source, now, asking);
}

/** A pair whose key somebody has looked at, or nobody could; throws where it cannot be used. */
export function openPublic(secret: PublicSecret): { readonly chain: readonly Certificate[] } {
  if (secret.keyProblem) throw new Error(secret.keyProblem);
  return { chain: certificatesIn(dataText(secret, TLS_CERT)) };
}

interface Sight extends Pick<HandOverItem, 'operator' | 'isByReceipts'> {
  readonly objects: InventoryObjects;
  /** Who verifies what a family signs. */
  verifiers(family: Family): Pick<HandOverItem, 'asks' | 'notCounted'>;
  readonly evidence: Receipts;
  readonly dayMs: number;
  readonly now: Date;
  readonly asking: Asking;
}

/** Where nobody acts by himself, what is due has not begun: it waits for the command. */
function asCommanded(item: HandOverItem): HandOverItem {
  const command = 'rotunda regenerate-machine-config-server-serving-cert';
  const hasBegun = item.next !== undefined || item.phase !== 'Distributing';
  if (!hasBegun) {
    const because = `due (${item.because}) when somebody runs ${command}`;
    return { ...item, phase: item.retiring.length > 0 ? 'Retiring' : 'Steady', write: 'nothing', because };
  }
  return item.write === 'nothing' && item.phase !== 'Signing'
    ? item
    : { ...item, because: `${item.because}; ${command} goes on with it` };
}

/** What user data holds is not for everybody's eyes: who has a CA of the server is known by what the command has noted. */
const SERVER_SIGHT = {
  operator: 'machine-config-server',
  isByReceipts: true,
  verifiers: () => ({
    asks: [{ process: 'machines at their first boot', nodes: 'new', how: 'by the user data that they are made with' }],
    notCounted: [],
  }),
  dayMs: SERVER_DAY_MS,
  asking: 'notes',
} as const satisfies Partial<Sight>;

async function itemOf(family: Family, sight: Sight): Promise<HandOverItem> {
  const { objects, operator, dayMs, now } = sight;
  const { signer } = family;
  const found = objectsOf(family, objects);
  const question = { ...sightOf(found, signer, now, openPublic), dayMs, now };
  const { decision, receipts, presenters, receiptsFrom } = await decided(family, found, question, sight);
  const notes = found.next === undefined ? {} : annotationsOf(found.next);
  const ends = decision.waitingFor.length === 0 ? undefined : endOf(question);
  return {
    metadata: found.signer === undefined ? { ...signer } : metadataOf(found.signer),
    operator,
    isByReceipts: sight.isByReceipts,
    phase: decision.phase,
    write: decision.write,
    because: decision.because,
    begunBecause: notes[BECAUSE],
    since: sinceOf(notes[SINCE]) ?? signedSince(question, decision)?.toISOString(),
    current: question.current?.subject.commonName,
    next: question.next?.subject.commonName,
    retiring: question.retiring.map(({ subject }) => subject.commonName),
    leaves: question.leaves.map(({ name, isOfCurrent }) => ({ name, isOfCurrent })),
    holdsLeaves: decision.leaves === 'hold',
    receipts: (receipts ?? []).map(receiptItem),
    receiptsFrom,
    presenters: (presenters ?? []).map(receiptItem),
    waitingFor: decision.waitingFor.map(({ verifier }) => verifier),
    leftBehind: decision.leftBehind.map(({ verifier }) => verifier),
    waitsUntil: ends && waitsUntil(ends, question).toISOString(),
    ...sight.verifiers(family),
  };
}

function verifiersIn(graph: TrustGraph, family: Family): Pick<HandOverItem, 'asks' | 'notCounted'> {
  const verifiers = verifiersOf(graph, leavesOf(family));
  return {
    asks: verifiers.flatMap(({ process, nodes, means }) =>
      means.kind === 'nobody' ? [] : [{ process, nodes, how: HOW[means.kind] }],
    ),
    notCounted: verifiers.flatMap(({ process, means }) =>
      means.kind === 'nobody' ? [{ process, why: means.why }] : [],
    ),
  };
}

const HOW: Readonly<Record<Exclude<Means['kind'], 'nobody'>, string>> = {
  ask: 'it names its CAs in a handshake',
  revision: 'by the revision it began with',
  agent: 'the agent of its node reports it',
  pod: 'its pod says what it was started with',
  'root-ca': 'its namespace has it, and it has begun since or has had the time to read it again',
};

interface Decided {
  readonly decision: FamilyDecision;
  readonly receipts?: readonly Receipt[] | undefined;
  readonly presenters?: readonly Receipt[] | undefined;
  readonly receiptsFrom?: HandOverItem['receiptsFrom'];
}

/** What `decide` is asked, but for what others say. */
type Unasked = Omit<FamilyQuestion, 'receipts' | 'presenters'>;

/** Asks about the CA that the decision depends on, if it depends on any, or looks at who shows what where that decides. */
async function decided(
  family: Family,
  { signer, next }: FamilyObjects,
  question: Unasked,
  { evidence, asking }: Sight,
): Promise<Decided> {
  let asked = undefined as Certificate | undefined;
  let isLookWanted = false;
  const unasked = decide({
    ...question,
    receipts: ca => {
      asked = ca;
      return undefined;
    },
    presenters: () => {
      isLookWanted = true;
      return undefined;
    },
  });
  const { current, retiring } = question;
  const isLooked = asked === undefined && isLookWanted && current !== undefined;
  if (asked === undefined && !isLooked) return { decision: unasked };
  const isOfNext = asked !== undefined && question.next?.der.equals(asked.der);
  const notes = annotationsOf((isOfNext ? next : signer) ?? {});
  const noted = notedReceipts(notes[isLooked ? PRESENTERS : RECEIPTS]);
  const asks = asking === 'everybody' || (asking === 'missing' && noted === undefined);
  const ref = secretRef(family.signer.namespace, family.signer.name);
  const ask = () => (isLooked ? evidence.shown(ref, { current, retiring }) : evidence.of(ref, asked as Certificate));
  const said = asks ? await ask() : noted;
  if (said === undefined) return { decision: unasked };
  const decision = decide({ ...question, receipts: () => said, presenters: () => (isLooked ? said : undefined) });
  const receiptsFrom = asks ? 'here' : 'operator';
  return { decision, receiptsFrom, ...(isLooked ? { presenters: said } : { receipts: said }) };
}

/** What ends while somebody is waited for. */
function endOf({ current, next, leaves }: Unasked) {
  if (next !== undefined) return current;
  const others = leaves.filter(({ isOfCurrent }) => !isOfCurrent);
  return others.toSorted((a, b) => a.notAfter.getTime() - b.notAfter.getTime())[0];
}

export function objectsOf({ signer, units }: Family, { secrets, configMaps }: InventoryObjects): FamilyObjects {
  const secret = (place: ObjectName): Secret | undefined => secrets.find(candidate => isNamed(candidate, place));
  const [{ bundle }] = units;
  return {
    signer: secret(signer),
    next: secret(nextKey(signer)),
    previous: secret(previousKey(signer)),
    bundle: configMaps.find((candidate): candidate is ConfigMap => isNamed(candidate, bundle)),
    leaves: units.map(({ target }) => secret(target)).filter(leaf => leaf !== undefined),
  };
}

function leavesOf({ units }: { readonly units: readonly RotationUnit[] }) {
  return units.map(({ target }) => secretRef(target.namespace, target.name));
}

function receiptItem({ verifier, node, kind, isLoaded, isWaived, evidence }: Receipt): ReceiptItem {
  return { verifier, ...(node === undefined ? {} : { node }), kind, isLoaded, isWaived, evidence };
}

function sinceOf(text: string | undefined): string | undefined {
  const since = text === undefined ? undefined : parseRfc3339(text);
  return since && floorToMs(since).toISOString();
}
