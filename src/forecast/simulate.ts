import { NOT_AFTER } from '../certrotation/annotations.ts';
import type { RotationUnit } from '../certrotation/config.ts';
import { reconcileUnit } from '../certrotation/reconcile.ts';
import { annotationsOf } from '../certrotation/secret.ts';
import { type Sync, syncUnit } from '../certrotation/unit.ts';
import { ETCD_NAMESPACE } from '../etcd/names.ts';
import { etcdTrust } from '../etcd/trust.ts';
import { nextKey } from '../hand-over/family.ts';
import type { HandOverMode } from '../hand-over/sync.ts';
import { isRevisionCopy } from '../inventory/certificates.ts';
import { FORCED } from '../inventory/forced.ts';
import { inventoryOf } from '../inventory/read.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../kube/resource.ts';
import { handOverModeOf } from '../kube-apiserver/hand-over-mode.ts';
import { OPERAND_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { CLUSTER, KUBE_API_SERVERS } from '../kube-apiserver/resources.ts';
import { kubeApiserverTrust } from '../kube-apiserver/trust.ts';
import { copyName } from '../staticpod/revision/number.ts';
import { joinGraphs } from '../trust/graph.ts';
import { isSameObject, type ObjectRef, objectText } from '../trust/object.ts';
import { deriveAll, outOfDate } from './derived.ts';
import { effectsAt, nodeNames, operandsToRollOut, pendingReboots } from './effects.ts';
import { endsUntil } from './ends.ts';
import { EtcdPlan } from './etcd.ts';
import { HandOverPlan, waitingNotes } from './hand-over.ts';
import type { HandOverPhase, Plan, PlanEvent } from './model.ts';
import type { PlanObjects } from './objects.ts';
import { holdsCertificate, holdsCertificates, twinsOf } from './twin.ts';
import { foreignUnits, kubeApiserverUnits, rotationDayFrom } from './units.ts';
import { PlanWorld } from './world.ts';

export interface PlanOptions {
  readonly now: Date;
  readonly until: Date;
  /** Secrets whose date is taken away at `now`, as the regenerate commands do. */
  readonly force?: readonly ObjectRef[] | undefined;
  /** How the operator of kube-apiserver hands signers over; as its resource says unless told otherwise. */
  readonly handOver?: HandOverMode | undefined;
  /** Nobody rotates anything in this time. */
  readonly stopped?: Standstill | undefined;
  /**
   * Looks at the world at the beginning and whenever something happened, and says when to look again even if nothing does; `enough` ends the
   * simulation.
   */
  readonly observe?: ((world: PlanWorld) => Promise<Date | 'enough' | undefined>) | undefined;
}

/** From `from` on, until just before `until`. */
export interface Standstill {
  readonly from: Date;
  readonly until: Date;
}

/** More events than this mean that something rotates without end. */
const MOST_EVENTS = 20_000;
/** A change wakes whoever watches the object; longer cascades than this do not exist. */
const MOST_ROUNDS = 12;

/**
 * What will happen until a moment: the real rotation code, run over a copy of the objects on a clock of its own. Keys are made up, so
 * nothing private is needed. A roll-out counts as done at the moment it begins, and everybody has loaded what was rolled out.
 */
export async function simulate(objects: PlanObjects, options: PlanOptions): Promise<Plan> {
  const simulation = await Simulation.begin(objects, options);
  await simulation.runUntil(options);
  return {
    from: options.now.toISOString(),
    to: options.until.toISOString(),
    warnings: endsUntil(inventoryOf(objects, options.now).certificates, options.until),
    events: simulation.events,
    notes: simulation.notes,
  };
}

/** Who shows and verifies what in the clusters that are simulated. */
export const TRUST = joinGraphs(kubeApiserverTrust(), etcdTrust());

class Simulation {
  readonly events: PlanEvent[] = [];
  readonly notes: string[] = [];
  readonly #world: PlanWorld;
  readonly #objects: PlanObjects;
  readonly #due = new Map<RotationUnit, number>();
  #handOver: HandOverPlan | undefined;
  /** Objects that changed at this moment for a hand-over. */
  readonly #phases = new Map<string, HandOverPhase>();
  #etcd: EtcdPlan | undefined;
  #etcdDueMs = Number.POSITIVE_INFINITY;
  #derivedDueMs = Number.POSITIVE_INFINITY;

  private constructor(objects: PlanObjects, now: Date) {
    this.#objects = objects;
    this.#world = new PlanWorld(now);
  }

  static async begin(objects: PlanObjects, { now, force = [], handOver }: PlanOptions): Promise<Simulation> {
    const simulation = new Simulation(objects, now);
    await simulation.#seed(force, handOver);
    return simulation;
  }

  async #seed(force: readonly ObjectRef[], handOver: HandOverMode | undefined): Promise<void> {
    const { nodes, operands } = this.#objects;
    const originals = { ...this.#objects, secrets: this.#objects.secrets.filter(secret => !isRevisionCopy(secret)) };
    const world = this.#world;
    const nowMs = world.now.getTime();
    const secrets = originals.secrets.filter(({ data }) => holdsCertificate(data));
    const configMaps = this.#objects.configMaps.filter(holdsCertificates);
    const stale = await outOfDate(configMaps, secrets, world.now);
    const twins = await twinsOf(secrets, configMaps);
    const forced = new Set(force.map(objectText));
    await world.seed(
      SECRETS,
      twins.secrets.map(secret => {
        const { namespace = '', name = '' } = secret.metadata ?? {};
        if (!forced.has(objectText({ kind: 'Secret', namespace, name }))) return secret;
        return {
          ...secret,
          metadata: { ...secret.metadata, annotations: { ...annotationsOf(secret), [NOT_AFTER]: FORCED } },
        };
      }),
    );
    await world.seed(CONFIG_MAPS, twins.configMaps);
    await world.seed(NODES, nodes);
    const operator = operands.find(({ operand }) => operand === 'kube-apiserver')?.resource;
    if (operator !== undefined) await world.seed(KUBE_API_SERVERS, [operator as never]);
    // The order inside the twins of combined bundles is another one; only what was out of date before is news.
    const { changes, until } = await deriveAll(world);
    for (const change of changes.filter(({ object }) => stale.some(ref => isSameObject(ref, object))))
      this.#note({ change: 'derived', ...change });
    this.#derivedDueMs = until?.getTime() ?? Number.POSITIVE_INFINITY;

    const dayMs = rotationDayFrom(this.#objects);
    const units = kubeApiserverUnits(originals, dayMs);
    for (const unit of [...units, ...foreignUnits(originals, this.notes)]) this.#due.set(unit, nowMs);
    if ((handOver ?? handOverModeOf(operator)) === 'receipts') {
      this.#handOver = await HandOverPlan.create(world, units, dayMs);
      this.notes.push(...waitingNotes(units, originals.secrets));
    }
    const etcd = operands.find(({ operand }) => operand === 'etcd')?.resource;
    this.#etcd = await EtcdPlan.create(world, etcd, nodes, dayMs);
    if (this.#etcd !== undefined) {
      await this.#etcd.rollOut();
      await this.#rollOutKubeApiserver();
      this.#etcdDueMs = nowMs;
    }
    this.events.push(...pendingReboots(this.#objects, world.now, this.notes));
  }

  async runUntil({ until: end, stopped, observe }: PlanOptions): Promise<void> {
    const look = async () => {
      const at = await observe?.(this.#world);
      return at === 'enough' ? undefined : (at?.getTime() ?? Number.POSITIVE_INFINITY);
    };
    let lookAtMs = await look();
    while (lookAtMs !== undefined) {
      const earliest = Math.min(...this.#due.values(), this.#etcdDueMs, this.#derivedDueMs);
      const dueMs = whenRunning(Math.max(earliest, this.#world.now.getTime()), stopped);
      const next = Math.min(dueMs, lookAtMs);
      if (next > end.getTime()) return;
      await this.#world.clock.advanceTo(new Date(next));
      if (next === dueMs) await this.#instant();
      lookAtMs = await look();
      if (this.events.length > MOST_EVENTS) {
        this.notes.push(`stopped after ${MOST_EVENTS} events`);
        return;
      }
    }
  }

  /** Everything that happens at one moment: first whoever is due, then whoever watches what changed, as the controllers do. */
  async #instant(): Promise<void> {
    const nowMs = this.#world.now.getTime();
    this.#phases.clear();
    let news: readonly ObjectRef[] = [];
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const names = new Set(news.map(objectText));
      const changed: ObjectRef[] = [];
      for (const [unit, dueMs] of this.#due) {
        if (round === 0 ? dueMs > nowMs : !isWatching(unit, names)) continue;
        this.#due.set(unit, await this.#rotate(unit));
        changed.push(...this.#announce(this.#handOver?.takePhase()));
      }
      const isEtcdAwake = round === 0 ? this.#etcdDueMs <= nowMs : news.some(isEtcds);
      if (this.#etcd !== undefined && isEtcdAwake) changed.push(...(await this.#rotateEtcd()));
      if (round === 0 && this.#derivedDueMs > nowMs && changed.length === 0) return;
      const { changes, until } = await deriveAll(this.#world);
      this.#derivedDueMs = until === undefined ? Number.POSITIVE_INFINITY : Math.max(until.getTime(), nowMs + 1);
      for (const change of changes) this.#note({ change: 'derived', ...change });
      changed.push(...changes.map(({ object }) => object));
      changed.push(...(await this.#embedded(changed)));
      await this.#rollOut(changed);
      await this.#handOver?.deliver();
      if (changed.length === 0) return;
      news = changed;
    }
    this.notes.push(`what happens at ${this.#world.now.toISOString()} does not come to an end`);
  }

  async #rotate(unit: RotationUnit): Promise<number> {
    try {
      const { rotation } = this.#world;
      const sync: Sync = this.#handOver?.syncOf(unit) ?? syncUnit;
      return (await reconcileUnit(unit, rotation, undefined, rotation.events, sync)).getTime();
    } catch (error) {
      const { namespace, name } = unit.target;
      this.#note({ change: 'fail', object: { kind: 'Secret', namespace, name }, reason: (error as Error).message });
      return Number.POSITIVE_INFINITY;
    }
  }

  async #rotateEtcd(): Promise<ObjectRef[]> {
    try {
      const { until, changed } = await (this.#etcd as EtcdPlan).pass();
      this.#etcdDueMs =
        until === undefined ? Number.POSITIVE_INFINITY : Math.max(until.getTime(), this.#world.now.getTime() + 1000);
      const announced = this.#announce();
      for (const object of changed)
        this.#note({ change: 'derived', object, reason: 'gathers the certificates of etcd' });
      return [...announced, ...changed];
    } catch (error) {
      this.#announce();
      this.#etcdDueMs = Number.POSITIVE_INFINITY;
      this.#note({ change: 'fail', reason: `etcd: ${(error as Error).message}` });
      return [];
    }
  }

  #announce(phase?: HandOverPhase): ObjectRef[] {
    const announced = this.#world.takeAnnounced();
    for (const entry of announced) {
      // A leaf that is made while a signer is distributed is made for a reason of its own.
      const isPart = phase === 'Signing' || entry.change !== 'certificate';
      if (phase !== undefined && isPart) this.#phases.set(objectText(entry.object), phase);
      this.#note(entry);
    }
    return announced.map(({ object }) => object);
  }

  /** Objects that carry another one inside them, such as kubeconfigs. */
  async #embedded(changed: readonly ObjectRef[]): Promise<ObjectRef[]> {
    const names = new Set(changed.map(objectText));
    const found: ObjectRef[] = [];
    for (const { from, to, kind } of TRUST.flows) {
      if (kind !== 'embedded' || !names.has(objectText(from)) || found.some(ref => objectText(ref) === objectText(to)))
        continue;
      const isThere = this.#objects.secrets.some(
        ({ metadata }) => to.kind === 'Secret' && metadata?.namespace === to.namespace && metadata.name === to.name,
      );
      if (!isThere) continue;
      this.#note({ change: 'derived', object: to, reason: `carries ${objectText(from)}` });
      found.push(to);
    }
    return found;
  }

  /** New revisions for what changed, each static pod once. */
  async #rollOut(changed: readonly ObjectRef[]): Promise<void> {
    for (const { operand, because } of operandsToRollOut(TRUST, changed)) {
      const nodes = nodeNames(this.#objects.nodes, 'control-plane');
      if (nodes.length === 0) continue;
      this.#note({
        change: 'rollout',
        reason: `a new revision of ${operand} carries ${because.map(objectText).join(', ')}; one node after the other`,
        effects: [{ kind: 'restart', process: operand, nodes }],
        phase: because.map(object => this.#phaseOf(object)).find(phase => phase !== undefined),
      });
      if (operand === 'etcd') await this.#etcd?.rollOut();
      else await this.#rollOutKubeApiserver();
    }
  }

  /** What etcd's hand-over looks at: which CAs the API servers run with. */
  async #rollOutKubeApiserver(): Promise<void> {
    const operator = await this.#world.kube.get(KUBE_API_SERVERS, CLUSTER).catch(() => undefined);
    if (operator === undefined) return;
    const revision = (operator.status?.latestAvailableRevision ?? 0) + 1;
    const ca = await this.#world.configMap({ namespace: OPERAND_NAMESPACE, name: 'etcd-serving-ca' });
    if (ca !== undefined) {
      const metadata = { namespace: OPERAND_NAMESPACE, name: copyName('etcd-serving-ca', revision) };
      await this.#world.put(CONFIG_MAPS, { metadata, data: ca.data ?? {} });
    }
    const nodeStatuses = (operator.status?.nodeStatuses ?? []).map(({ nodeName }) => ({
      nodeName,
      currentRevision: revision,
    }));
    const status = { ...operator.status, latestAvailableRevision: revision, nodeStatuses };
    await this.#world.kube.updateStatus(KUBE_API_SERVERS, { ...operator, status });
  }

  #note(event: Omit<PlanEvent, 'at' | 'effects'> & Partial<Pick<PlanEvent, 'effects'>>): void {
    const effects =
      event.effects ?? (event.object === undefined ? [] : effectsAt(TRUST, event.object, this.#objects.nodes));
    const phase = event.phase ?? (event.object && this.#phaseOf(event.object));
    this.events.push({ at: this.#world.now.toISOString(), ...event, ...(phase && { phase }), effects });
  }

  /** What follows from an object belongs to the same hand-over. */
  #phaseOf(object: ObjectRef): HandOverPhase | undefined {
    const known = this.#phases.get(objectText(object));
    if (known !== undefined) return known;
    for (const { from, to } of TRUST.flows) {
      const phase = isSameObject(to, object) ? this.#phases.get(objectText(from)) : undefined;
      if (phase === undefined) continue;
      this.#phases.set(objectText(object), phase);
      return phase;
    }
    return undefined;
  }
}

/** What falls into the time in which nobody rotates is done at its end. */
function whenRunning(dueMs: number, stopped: Standstill | undefined): number {
  if (stopped === undefined || dueMs < stopped.from.getTime()) return dueMs;
  return Math.max(dueMs, stopped.until.getTime());
}

/** Whether one of the objects of a unit is among these. */
function isWatching({ signer, bundle, target }: RotationUnit, names: ReadonlySet<string>): boolean {
  const places = [
    { kind: 'Secret', ...placeOf(signer) },
    { kind: 'Secret', ...nextKey(signer) },
    { kind: 'ConfigMap', ...placeOf(bundle) },
    { kind: 'Secret', ...placeOf(target) },
  ] as const;
  return places.some(ref => names.has(objectText(ref)));
}

function placeOf({ namespace, name }: { namespace: string; name: string }) {
  return { namespace, name };
}

/** What the cert signer of etcd looks at: its own namespace, the signers in use, and the CAs kube-apiserver runs with. */
function isEtcds({ namespace, name }: ObjectRef): boolean {
  return namespace === ETCD_NAMESPACE || name.startsWith('etcd-');
}
