import { FAMILY_TABLE, NODE_LEAVES } from '../etcd/cert-table.ts';
import { ETCD_NAMESPACE } from '../etcd/names.ts';
import { FAMILIES } from '../etcd/profile.ts';
import { days, hours, minutes, seconds } from '../kube/duration.ts';
import { KUBE_APISERVER_CHAINS } from '../kube-apiserver/chains.ts';
import { below, pick, type Random, seededRandom } from './random.ts';

/** One thing that goes wrong. Times are milliseconds since the cluster was up. */
export type Fault =
  /** A component dies before or after its so many-th write from then on, and is started again. */
  | { readonly kind: 'crash'; readonly atMs: number; readonly who: string; readonly write: number }
  /** A component does not run. */
  | { readonly kind: 'stopped'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** Calls of a component fail, before or after they were carried out, and its writes meet conflicts. */
  | { readonly kind: 'storm'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** Watches bring events late or twice, break with what is under way, or fall silent. */
  | { readonly kind: 'fog'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** All watches end, and none can be resumed. */
  | { readonly kind: 'compaction'; readonly atMs: number }
  | { readonly kind: 'api away'; readonly atMs: number; readonly forMs: number }
  | { readonly kind: 'node off'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** All that etcd had on the disk of a node is gone; after this long an administrator replaces the member. */
  | { readonly kind: 'etcd disk lost'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** The clock of a component goes wrong, from its next start on. */
  | { readonly kind: 'clock skew'; readonly atMs: number; readonly who: string; readonly byMs: number }
  /** Lists show what was there a while ago. */
  | { readonly kind: 'stale lists'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** Programs on a node need so many times as long for starting and stopping. */
  | {
      readonly kind: 'slow node';
      readonly atMs: number;
      readonly forMs: number;
      readonly who: string;
      readonly times: number;
    }
  /** Another instance takes over while the one before is in the middle of its work, and goes on for a while. */
  | { readonly kind: 'two leaders'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** No operator runs. */
  | { readonly kind: 'hibernation'; readonly atMs: number; readonly forMs: number }
  /** A person makes unreadable what a leaf, signer or bundle holds, and puts it right when nobody else has. */
  | { readonly kind: 'garbled'; readonly atMs: number; readonly forMs: number; readonly who: string }
  /** A person forces a signer or leaf, or deletes a leaf. */
  | { readonly kind: 'forced' | 'deleted'; readonly atMs: number; readonly who: string };

/** Of whom there is one for all nodes. */
export const OPERATORS = [
  'kube-apiserver-operator',
  'etcd-operator',
  'machine-config-operator',
  'kube-controller-manager',
  'operators of managers',
] as const;
const ETCD_SIGNERS = FAMILIES.map(family => `${ETCD_NAMESPACE}/${FAMILY_TABLE[family].signer}`);
const ETCD_LEAVES = [
  ...FAMILIES.map(family => `${ETCD_NAMESPACE}/${FAMILY_TABLE[family].client.secret}`),
  ...NODE_LEAVES.map(({ prefix }) => `${ETCD_NAMESPACE}/${prefix}master-0`),
];
const CHAINS = KUBE_APISERVER_CHAINS;
const OF_KUBE_APISERVER = [...new Set(CHAINS.map(({ signer }) => `${signer.namespace}/${signer.name}`))];
export const SIGNERS: readonly string[] = [...OF_KUBE_APISERVER, ...ETCD_SIGNERS];
const LEAVES = [...CHAINS.map(({ target }) => `${target.namespace}/${target.name}`), ...ETCD_LEAVES];
const BUNDLES = [...new Set(CHAINS.map(({ bundle }) => `${bundle.namespace}/${bundle.name}`))];
/** So long before the end of a life nothing goes wrong any more, so that everything can heal. */
const CALM_AT_THE_END_MS = days(2);

/** The nodes of a cluster that has so many of them. */
export interface Shape {
  readonly controlPlane?: number | undefined;
  readonly workers?: number | undefined;
}

/** What goes wrong in one life, by its seed: about so many faults a month. */
export function faultsOf(seed: string, lifeDays: number, perMonth = 6, shape: Shape = {}): Fault[] {
  const random = seededRandom(`${seed} faults`);
  const count = Math.max(1, Math.round((lifeDays / 30) * perMonth));
  const lastMs = Math.max(0, days(lifeDays) - CALM_AT_THE_END_MS);
  const found = Array.from({ length: count }, () => faultAt(Math.floor(random() * lastMs), random, nodesOf(shape)));
  return found
    .map(fault => ('forMs' in fault ? { ...fault, forMs: Math.min(fault.forMs, lastMs - fault.atMs) } : fault))
    .toSorted((a, b) => a.atMs - b.atMs);
}

function nodesOf({ controlPlane = 3, workers = 2 }: Shape): { readonly masters: string[]; readonly all: string[] } {
  const masters = Array.from({ length: controlPlane }, (_, index) => `master-${index}`);
  return { masters, all: [...masters, ...Array.from({ length: workers }, (_, index) => `worker-${index}`)] };
}

function faultAt(atMs: number, random: Random, { masters, all }: ReturnType<typeof nodesOf>): Fault {
  const onNode = (): string =>
    random() < 0.3
      ? `cert-syncer on ${pick(random, masters)}`
      : `${pick(random, ['agent', 'kubelet'])} on ${pick(random, all)}`;
  const anybody = (): string => (random() < 0.5 ? pick(random, OPERATORS) : onNode());
  const long = (longestMs: number) => Math.floor(longestMs * random() ** 3) + minutes(1);
  const kinds: readonly (() => Fault)[] = [
    () => ({ kind: 'crash', atMs, who: anybody(), write: 1 + below(random, 40) }),
    () => ({ kind: 'crash', atMs, who: 'kube-apiserver-operator', write: 1 + below(random, 40) }),
    () => ({ kind: 'stopped', atMs, forMs: long(days(20)), who: anybody() }),
    () => ({ kind: 'storm', atMs, forMs: long(days(1)), who: anybody() }),
    () => ({ kind: 'fog', atMs, forMs: long(days(1)), who: anybody() }),
    () => ({ kind: 'stale lists', atMs, forMs: long(days(1)), who: anybody() }),
    () => ({ kind: 'compaction', atMs }),
    () => ({ kind: 'api away', atMs, forMs: long(hours(6)) }),
    () => ({ kind: 'node off', atMs, forMs: long(days(60)), who: pick(random, all) }),
    () => ({ kind: 'slow node', atMs, forMs: long(days(2)), who: pick(random, masters), times: 2 + below(random, 60) }),
    () => ({ kind: 'clock skew', atMs, who: anybody(), byMs: Math.floor((random() - 0.5) * minutes(4)) }),
    () => ({ kind: 'etcd disk lost', atMs, forMs: long(days(10)), who: pick(random, masters) }),
    () => ({ kind: 'two leaders', atMs, forMs: long(minutes(10)), who: pick(random, OPERATORS) }),
    () => ({ kind: 'hibernation', atMs, forMs: long(days(50)) }),
    () => ({ kind: 'forced', atMs, who: pick(random, [...SIGNERS, ...LEAVES]) }),
    () => ({ kind: 'deleted', atMs, who: pick(random, LEAVES) }),
    () => ({ kind: 'garbled', atMs, forMs: long(days(2)), who: pick(random, [...SIGNERS, ...LEAVES, ...BUNDLES]) }),
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
      return `watches of ${fault.who} are late, double, broken or silent${long}`;
    case 'stale lists':
      return `lists of ${fault.who} show what was there a while ago${long}`;
    case 'slow node':
      return `programs on ${fault.who} start and stop ${fault.times} times as slowly${long}`;
    case 'two leaders':
      return `another ${fault.who} takes over, and the one before goes on${long}`;
    case 'hibernation':
      return `no operator runs${long}`;
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
    case 'garbled':
      return `somebody makes ${fault.who} unreadable${long}`;
  }
}

export function durationText(ms: number): string {
  if (ms >= days(2)) return `${Math.round(ms / days(1))} days`;
  if (ms >= hours(2)) return `${Math.round(ms / hours(1))} hours`;
  return `${Math.round(ms / minutes(1))} minutes`;
}
