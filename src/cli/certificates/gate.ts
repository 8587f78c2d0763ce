import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { ISSUER, NOT_BEFORE, REFRESH_PERIOD } from '../../certrotation/annotations.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { decideSignerByAnnotations } from '../../certrotation/signer.ts';
import { etcdTrust } from '../../etcd/trust.ts';
import { type Survey, surveyOf } from '../../hand-over/survey.ts';
import { days, formatGoDuration, parseGoDuration, seconds } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../../kube/resource.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { ObjectName } from '../../kube-apiserver/chains.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../kube-apiserver/resources.ts';
import { ROTATION_BASE } from '../../kube-apiserver/rotation/base.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { joinGraphs } from '../../trust/graph.ts';
import { secret as secretRef } from '../../trust/object.ts';
import { chainOfTarget, isNamed, type KnownChain } from '../inventory/known-chains.ts';
import { certificatesIn } from '../inventory/relations.ts';
import { rotationDayFrom } from '../plan/units.ts';
import { routesFrom } from '../verify/routes.ts';

/** Why a leaf should wait, and who would refuse it. */
export interface Gate {
  readonly because: string;
  /** Those who are known to refuse a leaf that is made now. */
  readonly cutOff: readonly string[];
}

/** Longest wait for the answer of one server. */
const ASK_TIMEOUT_MS = seconds(5);

/**
 * The leaves that wait, and why. Everybody who verifies is asked what they have loaded (spec 90, HO-2): who has not got the signer holds
 * the leaf back, however old the signer is; when all have it, its age does not count. Those who cannot say are trusted to have it after
 * a tenth of the refresh time, as scheduled leaves do (spec 10, T-8; spec 70, 9.2).
 */
export async function heldBack(kube: Kube, leaves: readonly Secret[], now: Date): Promise<Map<Secret, Gate>> {
  if (leaves.length === 0) return new Map();
  const [{ items: secrets }, base] = await Promise.all([
    listAll(kube, SECRETS),
    getIfPresent(kube, CONFIG_MAPS, ROTATION_BASE),
  ]);
  const dayMs = rotationDayFrom({ secrets, configMaps: base === undefined ? [] : [base] });
  const survey = surveyor(kube);
  const held = new Map<Secret, Gate>();
  for (const leaf of leaves) {
    const signer = signerOf(leaf, secrets);
    if (signer === undefined) continue;
    const gate = await gateOf(leaf, signer, dayMs, now, survey);
    if (gate !== undefined) held.set(leaf, gate);
  }
  return held;
}

export interface FoundSigner {
  readonly place: ObjectName;
  readonly secret: Secret;
  readonly known: KnownChain | undefined;
}

/** The signer that would sign this leaf: by our tables, else by the name of its issuer; undefined: it is not here. */
export function signerOf(leaf: Secret, secrets: readonly Secret[]): FoundSigner | undefined {
  const known = chainOfTarget(leaf);
  const place = known?.signer ?? signerNamed(annotationsOf(leaf)[ISSUER] ?? '');
  const secret = place && secrets.find(candidate => isNamed(candidate, place));
  return place === undefined || secret === undefined ? undefined : { place, secret, known };
}

/** Why one leaf waits. A signer that is about to be replaced holds it back too: nobody has the one that would sign it. */
export async function gateOf(
  leaf: Secret,
  signer: FoundSigner,
  dayMs: number,
  now: Date,
  survey: (signer: ObjectName, certificate: Certificate) => Promise<Survey | undefined>,
): Promise<Gate | undefined> {
  const { place, known } = signer;
  const name = `${place.namespace}/${place.name}`;
  // The signer that etcd's leaves are signed with changes by a hand-over, once everybody has the next one.
  const due = known?.operator === 'etcd' ? undefined : whySignerIsDue(signer.secret, known, dayMs, now);
  if (due !== undefined) {
    const because = `its signer ${name} is about to be replaced (${due}) by one that no verifier has yet`;
    return { because, cutOff: [] };
  }
  const [certificate] = certificatesIn(dataText(signer.secret, TLS_CERT));
  const said = certificate && (await survey(place, certificate));
  if (said !== undefined && said.missing.length > 0) {
    return { because: `its signer ${name} is not loaded yet by ${said.missing.join(', ')}`, cutOff: said.missing };
  }
  const young = whyTooYoung(leaf, signer, dayMs, now);
  const knowsAll = said !== undefined && said.loaded.length > 0 && said.silent.length + said.clients.length === 0;
  return young === undefined || knowsAll ? undefined : { because: young, cutOff: [] };
}

function whyTooYoung(
  leaf: Secret,
  { place, secret, known }: FoundSigner,
  dayMs: number,
  now: Date,
): string | undefined {
  const refreshMs = refreshOf(leaf) ?? (known && known.target.refreshDays * dayMs);
  const notBefore = parseRfc3339(annotationsOf(secret)[NOT_BEFORE] ?? '');
  if (refreshMs === undefined || notBefore === undefined) return undefined;
  const openAt = new Date(floorToMs(notBefore).getTime() + refreshMs / 10);
  if (openAt <= now) return undefined;
  const age = formatGoDuration(Math.floor((now.getTime() - floorToMs(notBefore).getTime()) / 1000) * 1000);
  const name = `${place.namespace}/${place.name}`;
  return `its signer ${name} is only ${age} old and may not have reached every verifier before ${openAt.toISOString()}`;
}

/** Asks the verifiers of a signer; each signer once. Where the nodes cannot be listed, nobody is asked. */
function surveyor(kube: Kube): (signer: ObjectName, certificate: Certificate) => Promise<Survey | undefined> {
  const graph = joinGraphs(kubeApiserverTrust(), etcdTrust());
  const surveys = new Map<string, Promise<Survey | undefined>>();
  const survey = async (place: ObjectName, certificate: Certificate): Promise<Survey | undefined> => {
    const [nodes, infrastructure] = await Promise.all([
      listAll(kube, NODES).catch(() => undefined),
      getIfPresent(kube, INFRASTRUCTURES, CLUSTER).catch(() => undefined),
    ]);
    if (nodes === undefined) return undefined;
    const routes = routesFrom(nodes.items, infrastructure);
    const signer = secretRef(place.namespace, place.name);
    const names = new Map(
      nodes.items.flatMap(({ metadata, status }) =>
        (status?.addresses ?? []).map(({ address }) => [address, metadata?.name ?? address] as const),
      ),
    );
    const nodeAt = (host: string) => names.get(host) ?? host;
    return surveyOf({ graph, signer, certificate, routes, nodeAt, timeoutMs: ASK_TIMEOUT_MS });
  };
  return (place, certificate) => {
    const id = `${place.namespace}/${place.name}`;
    const known = surveys.get(id) ?? survey(place, certificate);
    surveys.set(id, known);
    return known;
  };
}

/** The common name of a signer names its Secret: `<namespace>_<name>@<seconds>`. */
function signerNamed(issuer: string): ObjectName | undefined {
  const [, namespace, name] = /^([^_]+)_(.+)@\d+$/.exec(issuer) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

/** Why the next pass over a signer makes a new one, which the leaf would then get. Looks at no key: there may be none to look at. */
function whySignerIsDue(signer: Secret, known: KnownChain | undefined, dayMs: number, now: Date): string | undefined {
  const refreshMs = refreshOf(signer) ?? (known && known.signer.refreshDays * dayMs) ?? NO_REFRESH_MS;
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
