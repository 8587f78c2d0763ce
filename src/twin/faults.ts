import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { TLS_CERT } from '../certrotation/secret.ts';
import { minutes } from '../kube/duration.ts';
import { CONFIG_MAPS, type KubeObject, type Resource, SECRETS } from '../kube/resource.ts';
import type { Cluster } from './cluster.ts';
import type { Component } from './component.ts';
import { type Fault, faultText, OPERATORS, SIGNERS } from './fault.ts';
import { Inevitable } from './inevitable.ts';
import type { TwinNode } from './node.ts';
import { seededRandom } from './random.ts';
import { Fronts } from './weather.ts';

/** Lets faults happen to a cluster, and tells `inevitable` of them. */
export class Faults {
  readonly inevitable: Inevitable;
  readonly #cluster: Cluster;
  readonly #plan: readonly Fault[];
  readonly #fronts: Fronts;
  /** How many reasons there are for somebody not to run. */
  readonly #off = new Map<string, number>();
  /** How many have happened. */
  happened = 0;

  constructor(cluster: Cluster, plan: readonly Fault[]) {
    this.#cluster = cluster;
    this.#plan = plan;
    this.inevitable = new Inevitable();
    this.#fronts = new Fronts(seededRandom(`weather ${plan.length}`), who => this.#component(who)?.kill());
    const { onWrite } = cluster.api;
    cluster.api.onWrite = write => {
      onWrite(write);
      this.inevitable.signings.saw(write, cluster.time.nowMs);
    };
  }

  begin(beginMs: number): void {
    if (this.#plan.length === 0) return;
    const { api, time } = this.#cluster;
    api.weather = this.#fronts;
    for (const fault of this.#plan) void time.after(beginMs + fault.atMs - time.nowMs).then(() => this.#happens(fault));
  }

  #happens(fault: Fault): void {
    const { time } = this.#cluster;
    const end = this.#begin(fault);
    // Somebody cannot be stopped who does not run.
    if (end === undefined) return;
    this.happened++;
    this.#cluster.tell(`FAULT: ${faultText(fault)}`);
    time.changed();
    if (!('forMs' in fault)) return;
    void time.after(Math.max(0, fault.forMs)).then(() => {
      end();
      this.#cluster.tell(`over: ${faultText(fault)}`);
      time.changed();
    });
  }

  /** Returns what ends it; undefined: it could not happen. */
  #begin(fault: Fault): (() => void) | undefined {
    const { api } = this.#cluster;
    switch (fault.kind) {
      case 'crash':
        this.#fronts.crashAt(fault.who, fault.write);
        return () => {};
      case 'compaction':
        api.compact();
        api.endWatches();
        return () => {};
      case 'stopped':
        return this.#component(fault.who) && this.#stops([fault.who], fault.forMs);
      case 'hibernation':
        return this.#stops(OPERATORS, fault.forMs);
      case 'api away':
      case 'storm':
      case 'fog':
      case 'stale lists':
        return this.#front(fault);
      case 'node off':
        return this.#nodeOff(fault.who, fault.forMs);
      case 'etcd disk lost':
        return this.#etcdDiskLost(fault.who, fault.forMs);
      case 'slow node':
        return this.#slow(fault.who, fault.times, fault.forMs);
      case 'clock skew': {
        const component = this.#component(fault.who);
        if (component === undefined) return undefined;
        this.inevitable.clockIs(fault.byMs);
        component.skewMs = fault.byMs;
        component.kill();
        return () => {};
      }
      case 'two leaders': {
        const component = this.#component(fault.who);
        return component?.isRunning === true ? component.takeOver() : undefined;
      }
      case 'garbled':
        return this.#garbles(fault.who, fault.forMs);
      case 'forced':
      case 'deleted':
        return this.#person(fault.kind, fault.who) ? () => {} : undefined;
    }
  }

  #hinder(who: string, forMs: number): void {
    const fromMs = this.#cluster.time.nowMs;
    this.inevitable.hindrances.add({ who, fromMs, untilMs: fromMs + forMs });
  }

  #front(fault: Extract<Fault, { kind: 'api away' | 'storm' | 'fog' | 'stale lists' }>): () => void {
    const { api } = this.#cluster;
    const who = fault.kind === 'api away' ? undefined : fault.who;
    this.#hinder(who ?? 'the API', fault.forMs);
    this.#fronts.comes(fault.kind, who);
    if (fault.kind !== 'storm') api.endWatches();
    return () => {
      this.#fronts.goes(fault.kind, who);
      if (fault.kind !== 'storm') api.endWatches();
    };
  }

  #stops(all: readonly string[], forMs: number): () => void {
    for (const who of all) {
      this.#hinder(who, forMs);
      this.#wants(who, 1);
    }
    return () => {
      for (const who of all) this.#wants(who, -1);
    };
  }

  /** One reason more or less not to run. */
  #wants(who: string, reasons: number): void {
    const before = this.#off.get(who) ?? 0;
    const after = before + reasons;
    this.#off.set(who, after);
    if (this.#node(who)?.isOn === false) return;
    const runs = this.#cluster.kubeletOf(who) ?? this.#component(who);
    if (before === 0 && after > 0) runs?.stop();
    if (before > 0 && after === 0) runs?.start();
  }

  #nodeOff(who: string, forMs: number): (() => void) | undefined {
    const node = this.#node(who);
    if (node === undefined || !node.isOn || (node.isControlPlane && this.#isAnyLost())) return undefined;
    this.#hinder(who, forMs);
    this.#cluster.powerOff(node);
    return () => {
      this.#cluster.powerOn(node);
      for (const [stopped, reasons] of this.#off)
        if (reasons > 0 && stopped.endsWith(` on ${node.name}`))
          (this.#cluster.kubeletOf(stopped) ?? this.#component(stopped))?.stop();
    };
  }

  #etcdDiskLost(who: string, forMs: number): (() => void) | undefined {
    const node = this.#node(who);
    const { etcd } = this.#cluster;
    const member = etcd.members.find(({ name }) => name === who);
    if (node === undefined || member === undefined || this.#isAnyLost()) return undefined;
    this.#hinder(who, forMs);
    etcd.loseData(node);
    return () => void this.#replaceMember(member.id, node);
  }

  /** Whether a control-plane node has been lost: one at a time, more would be the end of quorum, which is nobody's to prevent here. */
  #isAnyLost(): boolean {
    const { nodes, time } = this.#cluster;
    return nodes.some(({ name, isControlPlane }) => isControlPlane && this.inevitable.isOff(name, time.nowMs));
  }

  /** An administrator tells etcd that a member is gone for good, trying again while nobody leads, and empties its disk once more. */
  async #replaceMember(id: string, node: TwinNode): Promise<void> {
    for (;;) {
      try {
        this.#cluster.etcd.remove(id);
        this.#cluster.etcd.loseData(node);
        return;
      } catch (error) {
        if (!/no leader/.test((error as Error).message)) throw error;
        await this.#cluster.time.after(minutes(1));
      }
    }
  }

  #slow(who: string, times: number, forMs: number): (() => void) | undefined {
    const node = this.#node(who);
    if (node === undefined) return undefined;
    this.#hinder(who, forMs);
    node.slowness *= times;
    return () => {
      node.slowness /= times;
    };
  }

  #person(kind: 'forced' | 'deleted', who: string): boolean {
    const { api } = this.#cluster;
    const key = keyIn(who);
    const secret = api.stored<Secret>(SECRETS, key);
    if (secret === undefined) return false;
    if (kind === 'deleted') api.delete(SOMEBODY, SECRETS, key);
    else {
      const { [NOT_AFTER]: _gone, ...annotations } = secret.metadata?.annotations ?? {};
      api.update(SOMEBODY, SECRETS, { ...secret, metadata: { ...secret.metadata, annotations } }, 'all');
    }
    return true;
  }

  /** Leaves are made anew by the operator; without a signer or a bundle it does nothing until somebody acts (spec 10, 4.5). */
  #garbles(who: string, forMs: number): (() => void) | undefined {
    const { api } = this.#cluster;
    const key = keyIn(who);
    const isBundle = api.stored(SECRETS, key) === undefined;
    const resource = (isBundle ? CONFIG_MAPS : SECRETS) as Resource as Resource<Holder>;
    const part = isBundle ? BUNDLE_KEY : TLS_CERT;
    const read = () => api.stored(resource, key);
    const write = (object: Holder, text: string) =>
      api.update(SOMEBODY, resource, { ...object, data: { ...object.data, [part]: text } }, 'all');
    const before = read();
    const good = before?.data?.[part];
    if (before === undefined || good === undefined) return undefined;
    if (isBundle || SIGNERS.includes(who)) this.#hinder('kube-apiserver-operator', forMs);
    write(before, NONSENSE);
    return () => {
      const now = read();
      if (now?.data?.[part] === NONSENSE) write(now, good);
    };
  }

  #component(name: string): Component | undefined {
    return this.#cluster.components.find(component => component.name === name);
  }

  #node(who: string): TwinNode | undefined {
    return this.#cluster.nodes.find(({ name }) => who === name || who.endsWith(` on ${name}`));
  }
}

/** A ConfigMap or a Secret. */
interface Holder extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

const SOMEBODY = 'somebody';
/** As base64 it is no certificate either. */
const NONSENSE = 'bm9uc2Vuc2U=';

function keyIn(who: string): { readonly namespace: string; readonly name: string } {
  const [namespace = '', name = ''] = who.split('/');
  return { namespace, name };
}
