import type { ConfigMap, Node, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { liveObjects, type Rotation } from '../../certrotation/ensure.ts';
import { ObjectLocks } from '../../certrotation/locks.ts';
import { store } from '../../certrotation/store.ts';
import type { Log } from '../../controller/log.ts';
import { earlier, type Result } from '../../controller/reconcile.ts';
import type { Answer, Question } from '../../hand-over/ask.ts';
import type { Clock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { isConflict, isNotFound } from '../../kube/error.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, keyOf, SECRETS } from '../../kube/resource.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { Certificate } from '../../pki/certificate.ts';
import type { Keys } from '../../pki/keys.ts';
import { caDigest } from '../../trust/receipts.ts';
import type { ServerPlace } from '../../trust/served.ts';
import type { SignerName } from '../chains.ts';
import {
  CLUSTER_RECORD,
  type ClusterSettings,
  type ClusterStatus,
  readSettings,
  statusOf,
  type Waiting,
  withStatus,
} from '../cluster-record.ts';
import { AUTHENTICATION, CLUSTER_INFO, PKI_NAMESPACE, ROOT_CA } from '../names.ts';
import { SERVICE_ACCOUNT } from '../service-account-keys.ts';
import { serversIn } from '../static-pods.ts';
import { encodeWanted, type Wanted, wantedKey } from '../wanted.ts';
import { accountKeysIn, isHandingOverKeys } from './account-keys.ts';
import { passAccountKeys } from './account-pass.ts';
import { decideAdoption } from './adoption.ts';
import { carryOut } from './carry-out.ts';
import type { Cluster, FamilySight } from './cluster.ts';
import { withCertificates } from './cluster-info.ts';
import { nextDue } from './due.ts';
import { type EvidenceSources, receiptsOf, type SeenNode } from './evidence.ts';
import { type FamilyState, familiesIn } from './families.ts';
import { asksAbout, type FamilyPlan, planOf, type Surroundings } from './hand-over.ts';
import { notedTokens, withoutNote } from './join-tokens.ts';
import { ALL_PODS_HOLD, FirstSeen, isOfPods, type OlderPod, podReceipts, podsHold, podTrust } from './older-pods.ts';
import { decideRound } from './round.ts';
import { presentersOf } from './shown.ts';
import { leftOver, namedIn, nodesSeen } from './sight.ts';
import { type AccountSight, statusFrom } from './status.ts';

export interface PassDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly keys: Keys;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly log: Log;
  nodes(): readonly Node[];
  /** Of namespace kube-system: what static pods say of themselves. */
  staticPods(): readonly Pod[];
  /** Of all namespaces; asked only in a hand-over. */
  pods(): Promise<readonly Pod[]>;
  /** Has the owner of one of these make another one, where it may be. */
  restart?: ((pods: readonly OlderPod[]) => Promise<void>) | undefined;
  ask?: ((question: Question) => Promise<Answer>) | undefined;
  look?: ((place: ServerPlace) => Promise<readonly Certificate[]>) | undefined;
  onSight?: ((sight: PassSight) => void) | undefined;
}

/** What a pass has seen and decided: for metrics. */
export interface PassSight {
  readonly nodes: readonly SeenNode[];
  readonly status: ClusterStatus;
  readonly families: readonly FamilyState[];
}

/** While somebody is waited for, everybody is asked again after a tenth of the time it has taken so far, between these. */
const SHORTEST_WAIT_MS = seconds(1);
const LONGEST_WAIT_MS = seconds(30);
/** Where nothing is known to come. */
const LONGEST_SLEEP_MS = minutes(10);

/** One look at the whole cluster, and the one write that follows from it; asks to be called again as long as there is another. */
export class Pass {
  readonly #deps: PassDeps;
  readonly #rotation: Rotation;
  readonly #firstSeen: FirstSeen;

  constructor(deps: PassDeps) {
    this.#deps = deps;
    const { kube, clock, keys, events, log } = deps;
    this.#rotation = { kube, objects: liveObjects(kube), clock, keys, events, log, locks: new ObjectLocks() };
    this.#firstSeen = new FirstSeen(() => clock.now());
  }

  async run(): Promise<Result> {
    const { kube, clock } = this.#deps;
    const now = clock.now();
    const record = await getIfPresent(kube, CONFIG_MAPS, CLUSTER_RECORD);
    // Not adopted, or released: there is nothing to look after.
    if (record === undefined) return { againAt: later(now, LONGEST_SLEEP_MS) };
    const read = readSettings(record);
    const before = statusOf(record);
    if (!read.ok) {
      const status: ClusterStatus = {
        ...statusFrom({ before, now, adopted: before?.adopted ?? false }),
        message: read.problem,
      };
      await this.#say(record, status);
      return { againAt: later(now, LONGEST_SLEEP_MS) };
    }
    const [secrets, configMaps] = await Promise.all([
      listAll(kube, SECRETS, { namespace: PKI_NAMESPACE }),
      listAll(kube, CONFIG_MAPS, { namespace: PKI_NAMESPACE }),
    ]);
    const pki = { secrets: secrets.items, configMaps: configMaps.items };
    for (const configMap of leftOver(this.#deps.nodes(), pki.configMaps)) await this.#forget(configMap);
    const nodes = nodesSeen(this.#deps.nodes(), pki.configMaps);
    const families = familiesIn(pki, nodes, now, read.settings.dayMs);
    const adoption = decideAdoption({
      nodes,
      publishFrom: read.settings.publishFrom,
      published: families.map(({ name }) => name),
      wasAdopted: before?.adopted ?? false,
      isHandingOver: pki.secrets.some(({ metadata }) => /-(?:next|previous)$/.test(metadata?.name ?? '')),
      areKeysReplaced: accountKeysIn(pki.secrets) !== undefined,
      now,
    });
    const scene: Scene = { record, before, settings: read.settings, pki, nodes, families, now };
    if (adoption.publish !== undefined) {
      const { node, wanted } = adoption.publish;
      return this.#order(scene, node, wanted, `it copies ${wanted.publishes.join(', ')} into Secrets`, {
        adopted: adoption.adopted,
        waiting: [],
        plans: new Map(),
      });
    }
    if (!adoption.adopted) {
      const { differences, waitsFor } = adoption;
      const status = statusFrom({ before, now, adopted: false, differences, waitsFor });
      await this.#say(record, status);
      this.#deps.onSight?.({ nodes, status, families });
      return { againAt: later(now, LONGEST_SLEEP_MS) };
    }
    return this.#lookAfter(scene, adoption.differences);
  }

  async #lookAfter(scene: Scene, differences: readonly string[]): Promise<Result> {
    const { settings, nodes, families, now, before } = scene;
    const sources = await this.#sources(scene);
    const plans = new Map<SignerName, FamilyPlan>();
    for (const family of families) {
      const plan = planOf(family, await this.#surroundings(family, scene, sources));
      plans.set(family.name, plan);
      if (plan.step.do === 'nothing') continue;
      await carryOut(family, plan.step, plan.decision, this.#rotation, notedTokens(sources.clusterInfo, now));
      return { againAt: now };
    }
    const ca = families.find(({ name }) => name === 'ca');
    if (ca !== undefined && !(await this.#publishForJoining(ca, sources.clusterInfo))) return { againAt: now };
    if (settings.pods === 'restart' && ca?.question.next !== undefined && waitsOnlyForPods(plans.get('ca'))) {
      const { lacking, older } = await sources.podTrust(ca.question.next);
      if (lacking.length === 0) await this.#deps.restart?.(older);
    }
    const { record, pki } = scene;
    const [{ pods }, staticPods] = [this.#deps, this.#deps.staticPods()];
    const around = { record, settings, nodes, secrets: pki.secrets, staticPods, pods, now };
    const isBegun = isHandingOverKeys(accountKeysIn(pki.secrets));
    const busy = isBegun ? families.find(hasBegun)?.name : busyBeside(undefined, families);
    const keys = await passAccountKeys({ ...around, busy }, this.#rotation);
    if (keys.wrote) return { againAt: now };
    const cluster: Cluster = {
      nodes,
      families: families.map(family => sightOf(family, plans.get(family.name))),
      separates: plans.get('ca')?.phase === 'Separating',
      serviceAccount: keys.goal,
      publish: keys.publish,
      refresh: settings.refresh,
      now,
    };
    const chosen = chosenBefore(before, nodes);
    const { step, waitingFor, againAt } = decideRound(cluster, chosen);
    const outcome = { adopted: true, differences, plans, waiting: waitingFor, account: keys.sight };
    if (step.do === 'order') return this.#order(scene, step.node, step.wanted, step.because, outcome);
    if (step.do === 'withdraw') {
      await this.#withdraw(scene, step.node);
      return { againAt: now };
    }
    const status = statusFrom({ ...outcome, before, now, families, nodes, refresh: settings.refresh });
    await this.#say(scene.record, status);
    this.#deps.onSight?.({ nodes, status, families });
    return { againAt: this.#againAt(cluster, status, plans, [againAt, keys.againAt]) };
  }

  #againAt(
    cluster: Cluster,
    { waitingFor }: ClusterStatus,
    plans: ReadonlyMap<SignerName, FamilyPlan>,
    againAt: readonly (Date | undefined)[],
  ): Date {
    const { now, nodes } = cluster;
    const due = nodes.map(node => nextDue(node, cluster)).reduce(earlier, undefined);
    const isAsking = [...plans.values()].some(
      ({ decision, phase }) => decision.waitingFor.length > 0 || phase === 'Distributing' || decision.leaves === 'hold',
    );
    const waitedMs = now.getTime() - Math.min(...waitingFor.map(({ since }) => Date.parse(since)), now.getTime());
    const ask = isAsking ? later(now, Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, waitedMs / 10))) : undefined;
    // What is due and held up is looked at again when something changes, or by the safety net.
    const times = [due, ...againAt, ask].filter(time => time !== undefined && time > now);
    return times.reduce(earlier, undefined) ?? later(now, LONGEST_SLEEP_MS);
  }

  async #sources(scene: Scene): Promise<Sources> {
    const { kube, ask, look } = this.#deps;
    const { nodes, families, settings, now } = scene;
    const ca = families.find(({ name }) => name === 'ca');
    const [clusterInfo, authentication] = await Promise.all([
      getIfPresent(kube, CONFIG_MAPS, CLUSTER_INFO),
      getIfPresent(kube, CONFIG_MAPS, AUTHENTICATION),
    ]);
    const trust = async (of: Certificate) => {
      const { items } = await listAll(kube, CONFIG_MAPS, { fieldSelector: `metadata.name=${ROOT_CA.name}` });
      const rootCas = items.filter(({ metadata }) => metadata?.name === ROOT_CA.name);
      return podTrust(await this.#deps.pods(), rootCas, of, ca?.question.bundle ?? [of], this.#firstSeen);
    };
    const isWaived = (name: string) => nodes.find(node => node.name === name)?.isWaived ?? false;
    return {
      nodes,
      servers: serversIn(this.#deps.staticPods()),
      clusterInfo,
      authentication,
      pods: async of =>
        podsHold(ca?.objects.signer, of) ? ALL_PODS_HOLD : podReceipts(await trust(of), settings.pods, isWaived, now),
      podTrust: trust,
      ask,
      look,
    };
  }

  async #surroundings(family: FamilyState, scene: Scene, sources: Sources): Promise<Surroundings> {
    const { cas, look } = asksAbout(family);
    const asked = await Promise.all(
      cas.map(async ca => [caDigest(ca), await receiptsOf(family.name, ca, sources)] as const),
    );
    const { current, question } = family;
    const presenters = look
      ? await presentersOf(family.name, { current, retiring: question.retiring }, sources)
      : undefined;
    return {
      receipts: new Map(asked),
      presenters,
      busy:
        busyBeside(family, scene.families) ??
        (isHandingOverKeys(accountKeysIn(scene.pki.secrets)) ? SERVICE_ACCOUNT : undefined),
      notSeparate: scene.nodes
        .filter(({ report, isControlPlane, isWaived }) => {
          const isServer = isControlPlane || report?.role === 'control-plane';
          return isServer && !isWaived && report?.signing?.isSeparate !== true;
        })
        .map(({ name }) => name),
      clusterInfo: sources.clusterInfo,
    };
  }

  /** False: something was written, or could not be. */
  async #publishForJoining(ca: FamilyState, clusterInfo: ConfigMap | undefined): Promise<boolean> {
    if (clusterInfo === undefined) return true;
    const { current, question } = ca;
    const others = question.bundle.filter(({ der }) => !der.equals(current.der));
    const told = withCertificates(clusterInfo, [current, ...others], this.#deps.clock.now());
    const wanted = told && withoutNote(told);
    if (wanted === clusterInfo) return true;
    if (wanted === undefined) {
      const text = `ConfigMap ${CLUSTER_INFO.namespace}/${CLUSTER_INFO.name} holds no kubeconfig with a cluster: nodes that join would not know the CA`;
      this.#deps.events.event('Warning', 'ClusterInfoUnreadable', text);
      return true;
    }
    await store(CONFIG_MAPS, clusterInfo, wanted, this.#rotation);
    return false;
  }

  /**
   * Asks a node for a round. It is noted first for whom: whoever comes after a stop in between asks the same node, and no other one, so that
   * two are never at work.
   */
  async #order(scene: Scene, node: string, wanted: Wanted, because: string, outcome: Outcome): Promise<Result> {
    const { record, before, now, pki, families, nodes, settings } = scene;
    const round = { node, round: wanted.round, since: now.toISOString(), because };
    const status = statusFrom({ ...outcome, before, now, families, nodes, refresh: settings.refresh, round });
    if (!(await this.#say(record, status))) return { againAt: now };
    const key = wantedKey(node);
    const found = namedIn(pki.configMaps, key);
    const configMap: ConfigMap = { ...(found ?? { metadata: key }), data: encodeWanted(wanted) };
    const written = await store(CONFIG_MAPS, found, configMap, { ...this.#rotation, events: SILENT });
    if (written !== undefined) this.#deps.events.event('Normal', 'NodeRoundBegun', `node/${node}: ${because}`);
    this.#deps.onSight?.({ nodes, status, families });
    return { againAt: now };
  }

  /** What was asked of a node that nobody waits for is taken back. */
  async #withdraw({ pki, nodes }: Scene, name: string): Promise<void> {
    const node = nodes.find(candidate => candidate.name === name);
    const found = namedIn(pki.configMaps, wantedKey(name));
    if (node?.wanted === undefined || found === undefined) return;
    const done = node.report?.done;
    if (done === undefined) return this.#forget(found);
    await store(CONFIG_MAPS, found, { ...found, data: encodeWanted({ ...node.wanted, round: done }) }, this.#rotation);
  }

  async #forget(configMap: ConfigMap): Promise<void> {
    const { uid, resourceVersion } = configMap.metadata ?? {};
    try {
      await this.#deps.kube.delete(CONFIG_MAPS, keyOf(configMap), { preconditions: { uid, resourceVersion } });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  /** False: another writer was first. */
  async #say(record: ConfigMap, status: ClusterStatus): Promise<boolean> {
    const { events } = this.#deps;
    const before = statusOf(record);
    const wanted = withStatus(record, status);
    if (wanted.data?.status === record.data?.status) return true;
    const rotation = { ...this.#rotation, events: SILENT };
    if ((await store(CONFIG_MAPS, record, wanted, rotation)) === undefined) return false;
    if (status.adopted && !before?.adopted)
      events.event('Normal', 'ClusterAdopted', 'all control-plane nodes agree, and the CAs are in Secrets');
    for (const difference of status.differences) {
      if (!before?.differences.includes(difference)) events.event('Warning', 'ClusterDiffers', difference);
    }
    if (before?.round !== undefined && status.round?.node !== before.round.node)
      events.event('Normal', 'NodeRoundDone', `node/${before.round.node}: ${before.round.because}`);
    return true;
  }
}

interface Scene {
  readonly record: ConfigMap;
  readonly before: ClusterStatus | undefined;
  readonly settings: ClusterSettings;
  readonly pki: { readonly secrets: readonly Secret[]; readonly configMaps: readonly ConfigMap[] };
  readonly nodes: readonly SeenNode[];
  readonly families: readonly FamilyState[];
  readonly now: Date;
}

interface Sources extends EvidenceSources {
  podTrust(ca: Certificate): Promise<ReturnType<typeof podTrust>>;
  look?: PassDeps['look'];
}

interface Outcome {
  readonly adopted: boolean;
  readonly differences?: readonly string[];
  readonly plans: ReadonlyMap<SignerName, FamilyPlan>;
  readonly account?: AccountSight | undefined;
  readonly waiting: readonly Omit<Waiting, 'since'>[];
}

const SILENT = { event: () => {} };

/** One family at a time: the first that has begun, else the first that is due; undefined: it is the turn of this one. */
function busyBeside(family: FamilyState | undefined, families: readonly FamilyState[]): string | undefined {
  const begun = families.find(hasBegun);
  const isDue = ({ question, hasKey }: FamilyState) => hasKey && (question.due !== undefined || question.isTurnedRound);
  const turn = begun ?? families.find(isDue);
  return turn === undefined || turn.name === family?.name ? undefined : turn.name;
}

function hasBegun({ objects, question }: FamilyState): boolean {
  const isSigning = question.retiring.length > 0 && !question.isShown;
  return objects.next !== undefined || isSigning || question.leaves.some(({ isOfCurrent }) => !isOfCurrent);
}

/** Whoever was restarted before kube-controller-manager publishes the next CA for good would have to be restarted again. */
function waitsOnlyForPods(plan: FamilyPlan | undefined): boolean {
  const waitingFor = plan?.phase === 'Distributing' ? plan.decision.waitingFor : [];
  return waitingFor.length > 0 && waitingFor.every(isOfPods);
}

function sightOf({ name, current, question }: FamilyState, plan: FamilyPlan | undefined): FamilySight {
  const others = question.bundle.filter(({ der }) => !der.equals(current.der));
  return { name, current, trusted: [current, ...others], leaves: plan?.decision.leaves ?? 'hold' };
}

/** A node that was noted for a round, and that may not have been asked for it yet. */
function chosenBefore(before: ClusterStatus | undefined, nodes: readonly SeenNode[]): string | undefined {
  const round = before?.round;
  const node = round && nodes.find(({ name }) => name === round.node);
  if (round === undefined || node === undefined) return undefined;
  const asked = parseRfc3339(node.wanted?.round ?? '');
  const noted = parseRfc3339(round.round);
  if (noted === undefined || (asked !== undefined && floorToMs(asked) >= floorToMs(noted))) return undefined;
  return node.name;
}

function later(now: Date, ms: number): Date {
  return new Date(now.getTime() + ms);
}
