import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../certrotation/annotations.ts';
import { FAMILY_TABLE, NODE_LEAVES } from '../etcd/cert-table.ts';
import { ETCD_NAMESPACE } from '../etcd/names.ts';
import { FAMILIES } from '../etcd/profile.ts';
import { days, hours, minutes, seconds } from '../kube/duration.ts';
import { ConnectionError, KubeError } from '../kube/error.ts';
import type { Resource } from '../kube/resource.ts';
import { SECRETS } from '../kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../kube-apiserver/chains.ts';
import type { Weather } from './api.ts';
import type { Cluster } from './cluster.ts';
import type { Refusal } from './edges.ts';
import type { Excuses } from './excuses.ts';
import type { TwinNode } from './node.ts';
import { below, pick, type Random, seededRandom } from './random.ts';

/** One thing that goes wrong. Times are milliseconds since the cluster was up. */
export type Fault =
  /** A component dies before or after its so many-th write from then on, and is started again. */
  | { readonly kind: 'crash'; readonly atMs: number; readonly who: string; readonly write: number }
  /** A component does not run. */
  | { readonly kind: 'stopped'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** Calls of a component fail, before or after they were carried out, and its writes meet conflicts. */
  | { readonly kind: 'storm'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** Watches bring events late, or fall silent. */
  | { readonly kind: 'fog'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** All watches end, and none can be resumed. */
  | { readonly kind: 'compaction'; readonly atMs: number }
  | { readonly kind: 'api away'; readonly atMs: number; readonly forMs: number }
  | { readonly kind: 'node off'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** All that etcd had on the disk of a node is gone; after this long an administrator replaces the member. */
  | { readonly kind: 'etcd disk lost'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** The clock of a component goes wrong, from its next start on. */
  | { readonly kind: 'clock skew'; readonly atMs: number; readonly who: string; readonly byMs: number }
  /** A person forces a signer or leaf, or deletes a leaf. */
  | { readonly kind: 'forced' | 'deleted'; readonly atMs: number; readonly who: string };

const OPERATORS = [
  'kube-apiserver-operator',
  'etcd-operator',
  'machine-config-operator',
  'kube-controller-manager',
] as const;
const MASTERS = ['master-0', 'master-1', 'master-2'] as const;
const AGENTS = [...MASTERS, 'worker-0', 'worker-1'] as const;
const ETCD_SIGNERS = FAMILIES.map(family => `${ETCD_NAMESPACE}/${FAMILY_TABLE[family].signer}`);
const ETCD_LEAVES = [
  ...FAMILIES.map(family => `${ETCD_NAMESPACE}/${FAMILY_TABLE[family].client.secret}`),
  ...NODE_LEAVES.flatMap(({ prefix }) => MASTERS.map(node => `${ETCD_NAMESPACE}/${prefix}${node}`)),
];
const CHAINS = KUBE_APISERVER_CHAINS;
const SIGNERS = [...new Set(CHAINS.map(({ signer }) => `${signer.namespace}/${signer.name}`)), ...ETCD_SIGNERS];
const LEAVES = [...CHAINS.map(({ target }) => `${target.namespace}/${target.name}`), ...ETCD_LEAVES];
/** So long before the end of a life nothing goes wrong any more, so that everything can heal. */
const CALM_AT_THE_END_MS = days(2);

/** What goes wrong in one life, by its seed: about so many faults a month. */
export function faultsOf(seed: string, lifeDays: number, perMonth = 6): Fault[] {
  const random = seededRandom(`${seed} faults`);
  const count = Math.max(1, Math.round((lifeDays / 30) * perMonth));
  const lastMs = Math.max(0, days(lifeDays) - CALM_AT_THE_END_MS);
  const found = Array.from({ length: count }, () => faultAt(Math.floor(random() * lastMs), random));
  return found
    .map(fault => ('forMs' in fault ? { ...fault, forMs: Math.min(fault.forMs, lastMs - fault.atMs) } : fault))
    .toSorted((a, b) => a.atMs - b.atMs);
}

function faultAt(atMs: number, random: Random): Fault {
  const anybody = (): string =>
    random() < 0.5
      ? pick(random, OPERATORS)
      : `${pick(random, ['agent', 'cert-syncer', 'kubelet'])} on ${pick(random, AGENTS)}`;
  const long = (longestMs: number) => Math.floor(longestMs * random() ** 3) + minutes(1);
  const kinds: readonly (() => Fault)[] = [
    () => ({ kind: 'crash', atMs, who: anybody(), write: 1 + below(random, 40) }),
    () => ({ kind: 'crash', atMs, who: 'kube-apiserver-operator', write: 1 + below(random, 40) }),
    () => ({ kind: 'stopped', atMs, forMs: long(days(20)), who: anybody() }),
    () => ({ kind: 'storm', atMs, forMs: long(days(1)), who: anybody() }),
    () => ({ kind: 'fog', atMs, forMs: long(days(1)), who: anybody() }),
    () => ({ kind: 'compaction', atMs }),
    () => ({ kind: 'api away', atMs, forMs: long(hours(6)) }),
    () => ({ kind: 'node off', atMs, forMs: long(days(60)), who: pick(random, AGENTS) }),
    () => ({ kind: 'clock skew', atMs, who: anybody(), byMs: Math.floor((random() - 0.5) * minutes(4)) }),
    () => ({ kind: 'etcd disk lost', atMs, forMs: long(days(10)), who: pick(random, MASTERS) }),
    () => ({ kind: 'forced', atMs, who: pick(random, [...SIGNERS, ...LEAVES]) }),
    () => ({ kind: 'deleted', atMs, who: pick(random, LEAVES) }),
  ];
  return pick(random, kinds)();
}

/** One line for people. */
export function faultText(fault: Fault): string {
  const long = 'forMs' in fault ? ` for ${durationText(fault.forMs)}` : '';
  switch (fault.kind) {
    case 'crash':
      return `${fault.who} dies at its ${fault.write}. write from now on`;
    case 'stopped':
      return `${fault.who} does not run${long}`;
    case 'storm':
      return `calls of ${fault.who} fail${long}`;
    case 'fog':
      return `watches of ${fault.who} are late or silent${long}`;
    case 'compaction':
      return 'all watches end, and none can be resumed';
    case 'api away':
      return `the API is away${long}`;
    case 'node off':
      return `${fault.who} is off${long}`;
    case 'etcd disk lost':
      return `${fault.who} loses the disk of etcd, and is replaced after ${durationText(fault.forMs)}`;
    case 'clock skew':
      return `the clock of ${fault.who} goes wrong by ${fault.byMs / seconds(1)} s`;
    case 'forced':
      return `somebody forces ${fault.who}`;
    case 'deleted':
      return `somebody deletes ${fault.who}`;
  }
}

export function durationText(ms: number): string {
  if (ms >= days(2)) return `${Math.round(ms / days(1))} days`;
  if (ms >= hours(2)) return `${Math.round(ms / hours(1))} hours`;
  return `${Math.round(ms / minutes(1))} minutes`;
}

/** After a hindrance is over everything has so long to heal. */
const HEALS_WITHIN_MS = hours(2);
/** Whoever renews something before its end needs so long for it. */
const NEEDS_MS = hours(6);

/** Lets faults happen to a cluster, and remembers what they hindered. */
export class Faults implements Excuses {
  readonly #cluster: Cluster;
  readonly #plan: readonly Fault[];
  readonly #random: Random;
  readonly #crashes = new Map<string, number>();
  /** What was hindered: from, until (as far as is known), who. */
  readonly #hindrances: { readonly who: string; readonly fromMs: number; readonly untilMs: number }[] = [];
  #beginMs = 0;
  /** How many have happened. */
  happened = 0;

  constructor(cluster: Cluster, plan: readonly Fault[]) {
    this.#cluster = cluster;
    this.#plan = plan;
    this.#random = seededRandom(`weather ${plan.length}`);
  }

  begin(beginMs: number): void {
    if (this.#plan.length === 0) return;
    this.#beginMs = beginMs;
    this.#cluster.api.weather = this.#weather();
    for (const fault of this.#plan) {
      const atMs = beginMs + fault.atMs;
      void this.#cluster.time.after(atMs - this.#cluster.time.nowMs).then(() => this.#happens(fault));
    }
  }

  whyRefused({ refuser, refused, code, shown }: Refusal, nowMs: number): string | undefined {
    const nodes = [refuser, refused].map(side => side.replace(/^.* on /, ''));
    void shown;
    for (const { who, fromMs, untilMs } of this.#hindrances) {
      if (nowMs < fromMs || nowMs > untilMs + HEALS_WITHIN_MS) continue;
      const lastedMs = Math.min(nowMs, untilMs) - fromMs;
      const concerns = nodes.some(node => who.endsWith(node));
      if (concerns && lastedMs >= NEEDS_MS) return `${who} was hindered for ${durationText(lastedMs)}`;
      if (code === 'EXPIRED' && isForAll(who) && lastedMs >= NEEDS_MS)
        return `${who} was hindered for ${durationText(lastedMs)}`;
    }
    return undefined;
  }

  isOff(node: string, nowMs: number): boolean {
    return this.#hindrances.some(
      ({ who, fromMs, untilMs }) => who === node && nowMs >= fromMs && nowMs <= untilMs + HEALS_WITHIN_MS,
    );
  }

  #hinder(who: string, forMs: number): void {
    const fromMs = this.#cluster.time.nowMs;
    this.#hindrances.push({ who, fromMs, untilMs: fromMs + forMs });
  }

  #happens(fault: Fault): void {
    const { time } = this.#cluster;
    this.happened++;
    this.#cluster.tell(`FAULT: ${faultText(fault)}`);
    time.changed();
    const forMs = 'forMs' in fault ? Math.max(0, fault.forMs) : 0;
    const isOver = () =>
      time.after(forMs).then(() => {
        this.#cluster.tell(`over: ${faultText(fault)}`);
        time.changed();
      });
    switch (fault.kind) {
      case 'crash':
        this.#crashes.set(fault.who, fault.write);
        break;
      case 'compaction':
        this.#cluster.api.compact();
        this.#cluster.api.endWatches();
        break;
      case 'stopped': {
        const component = this.#component(fault.who);
        if (component === undefined || !component.isRunning) break;
        this.#hinder(fault.who, forMs);
        const kubelet = this.#cluster.kubeletOf(fault.who);
        if (kubelet === undefined) component.stop();
        else kubelet.stop();
        void isOver().then(() => {
          if (this.#node(fault.who)?.isOn === false) return;
          if (kubelet === undefined) component.start();
          else kubelet.start();
        });
        break;
      }
      case 'api away':
        this.#hinder('the API', forMs);
        this.#cluster.api.endWatches();
        void isOver();
        break;
      case 'storm':
      case 'fog':
        this.#hinder(fault.who, forMs);
        if (fault.kind === 'fog') this.#cluster.api.endWatches();
        void isOver().then(() => fault.kind === 'fog' && this.#cluster.api.endWatches());
        break;
      case 'node off': {
        const node = this.#node(fault.who);
        if (node === undefined || !node.isOn || (node.isControlPlane && this.#isAnyLost())) break;
        this.#hinder(fault.who, forMs);
        this.#cluster.powerOff(node);
        void isOver().then(() => this.#cluster.powerOn(node));
        break;
      }
      case 'etcd disk lost': {
        const node = this.#node(fault.who);
        const { etcd } = this.#cluster;
        const member = etcd.members.find(({ name }) => name === fault.who);
        if (node === undefined || member === undefined || this.#isAnyLost()) break;
        this.#hinder(fault.who, forMs);
        etcd.loseData(node);
        void isOver().then(() => this.#replaceMember(member.id, node));
        break;
      }
      case 'clock skew': {
        const component = this.#component(fault.who);
        if (component === undefined) break;
        component.skewMs = fault.byMs;
        component.kill();
        break;
      }
      case 'forced':
      case 'deleted':
        this.#person(fault.kind, fault.who);
        break;
    }
  }

  /** Whether a control-plane node has been lost: one at a time, more would be the end of quorum, which is nobody's to prevent here. */
  #isAnyLost(): boolean {
    const { nodes, time } = this.#cluster;
    return nodes.some(({ name, isControlPlane }) => isControlPlane && this.isOff(name, time.nowMs));
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

  #person(kind: 'forced' | 'deleted', who: string): void {
    const [namespace = '', name = ''] = who.split('/');
    const { api } = this.#cluster;
    const stored = api.stored<Secret>(SECRETS, { namespace, name });
    if (stored === undefined) return;
    if (kind === 'deleted') api.delete('somebody', SECRETS, { namespace, name });
    else {
      const { [NOT_AFTER]: _gone, ...annotations } = stored.metadata?.annotations ?? {};
      api.update('somebody', SECRETS, { ...stored, metadata: { ...stored.metadata, annotations } }, 'all');
    }
  }

  #component(name: string) {
    return this.#cluster.components.find(component => component.name === name);
  }

  #node(who: string) {
    return this.#cluster.nodes.find(({ name }) => who.endsWith(name));
  }

  #isUnder(kind: Fault['kind'], who: string): boolean {
    const now = this.#cluster.time.nowMs - this.#beginMs;
    return this.#plan.some(
      fault =>
        fault.kind === kind &&
        'forMs' in fault &&
        now >= fault.atMs &&
        now < fault.atMs + fault.forMs &&
        (!('who' in fault) || fault.who === who),
    );
  }

  #weather(): Weather {
    return {
      call: ({ by, verb, resource }) => {
        if (this.#isUnder('api away', by)) return { before: new ConnectionError('ECONNREFUSED', 'the API is away') };
        const isWrite = verb !== 'get' && verb !== 'list' && verb !== 'watch';
        const left = this.#crashes.get(by);
        if (isWrite && left !== undefined) {
          this.#crashes.set(by, left - 1);
          if (left <= 1) {
            this.#crashes.delete(by);
            this.#component(by)?.kill();
            return {};
          }
        }
        return this.#isUnder('storm', by) ? this.#storm(verb, resource) : {};
      },
      watch: by => {
        if (!this.#isUnder('fog', by)) return { delayMs: () => 0 };
        return { delayMs: () => (this.#random() < 0.05 ? undefined : this.#random() * minutes(2)) };
      },
    };
  }

  #storm(verb: string, { plural }: Resource): ReturnType<Weather['call']> {
    const lot = this.#random();
    if (lot < 0.1) return { before: new ConnectionError('ECONNRESET', 'the connection broke') };
    if (lot < 0.2) return { after: new ConnectionError('ECONNRESET', 'the connection broke') };
    if (lot < 0.25) return { before: new KubeError(500, 'InternalError', 'etcdserver: request timed out') };
    if (lot < 0.35 && (verb === 'update' || verb === 'updateStatus'))
      return { before: new KubeError(409, 'Conflict', `${plural}: the object has been modified`) };
    return {};
  }
}

/** What is off for everybody. */
function isForAll(who: string): boolean {
  return who === 'the API' || OPERATORS.some(operator => operator === who);
}
