import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { CLIENT_PORT, PEER_PORT } from '../etcd/names.ts';
import { DATA_DIRECTORY } from '../etcd/operand/env.ts';
import type { Member } from '../etcd/quorum/member.ts';
import { minutes, seconds } from '../kube/duration.ts';
import type { ComponentWorld } from './component.ts';
import type { Party } from './edges.ts';
import type { RunningPod, TwinNode } from './node.ts';
import type { Operand } from './static-pods.ts';

export interface EtcdOptions {
  readonly world: ComponentWorld;
  readonly nodes: () => readonly TwinNode[];
  /** Why a client and a member would not connect over an edge of etcd's trust graph; undefined: they would. */
  readonly whyNot: (edge: string, client: Party, server: Party) => string | undefined;
}

/** A member serves so long after its process began, and a learner has caught up so long after that. */
const SERVES_AFTER_MS = seconds(5);
const CAUGHT_UP_AFTER_MS = seconds(3);
/** Without a leader that says goodbye the others wait for so long before they elect one. */
const ELECTION_MS = seconds(1.5);
/** A container that ends is started again after twice as long each time, up to this. */
const LONGEST_BACKOFF_MS = minutes(5);
const SHORTEST_BACKOFF_MS = seconds(10);
const DATA_FILE = `${DATA_DIRECTORY}/member`;
const PEERS = 'etcd to etcd';

/**
 * The members of etcd as a small model: who belongs to it, who leads, who is reached by whom; verified over the edges of etcd's trust
 * graph. What a member has on its disk is its id; a voter whose disk is lost is one that the others cannot take back.
 */
export class EtcdCluster {
  readonly #options: EtcdOptions;
  readonly #records: MemberRecord[] = [];
  /** By the name of the node. */
  readonly #processes = new Map<string, Process>();
  /** Ids of members whose log is gone. */
  readonly #lost = new Set<string>();
  #ids = 0;
  #leader: Process | undefined;
  #isElecting = false;
  #waiting: (() => void)[] = [];
  term = 0;
  /** What nothing can mend. */
  disaster: string | undefined;
  /** Every control-plane node had its vote once: from then on the API is nothing without a majority. */
  wasComplete = false;

  constructor(options: EtcdOptions) {
    this.#options = options;
  }

  get members(): readonly Member[] {
    return this.#records;
  }

  get leader(): string | undefined {
    return this.#leader?.node.name;
  }

  /** There was a whole cluster, and it has no majority. */
  get isLost(): boolean {
    return this.wasComplete && this.#leader === undefined;
  }

  /** The static pod of etcd on a node. */
  memberOn(node: TwinNode): Operand {
    return {
      processes: ['etcd', 'etcd-readyz', 'etcd-metrics', 'etcdctl'],
      begin: (pod, ready) => {
        const process: Process = { node, pod, ready, isOver: false, servesMs: undefined, id: undefined };
        this.#processes.set(node.name, process);
        void this.#run(process);
        return {
          end: how => {
            process.isOver = true;
            if (this.#processes.get(node.name) === process) this.#processes.delete(node.name);
            this.#settle(how === 'stopped');
          },
        };
      },
    };
  }

  /** Something has changed: whoever led may be reached by nobody any more. */
  look(): void {
    this.#settle(false);
  }

  /** Whether a voter answers when it has to ask the others; a learner answers for itself. */
  answers(node: TwinNode, forItself: boolean): boolean {
    const process = this.#processes.get(node.name);
    if (process?.servesMs === undefined || process.isOver) return false;
    if (forItself) return true;
    const leader = this.#leader;
    return leader !== undefined && (leader === process || this.#reach(leader, process));
  }

  /** All that etcd had on the disk is gone; the process begins anew. */
  loseData(node: TwinNode): void {
    node.disk.remove(DATA_FILE);
    const process = this.#processes.get(node.name);
    if (process === undefined) return;
    const again: Process = { ...process, servesMs: undefined, id: undefined };
    process.isOver = true;
    process.ready(false);
    this.#processes.set(node.name, again);
    node.pods.get('etcd')?.hands.set('etcd', node.begin());
    this.#settle(false);
    void this.#run(again);
  }

  addLearner(peerURL: string): void {
    this.#assertLed();
    if (this.#records.some(({ peerURLs }) => peerURLs.includes(peerURL)))
      throw new Error('etcdserver: Peer URLs already exists');
    if (this.#records.some(({ isLearner }) => isLearner))
      throw new Error('etcdserver: too many learner members in cluster');
    this.#records.push({ id: String(++this.#ids), name: '', peerURLs: [peerURL], clientURLs: [], isLearner: true });
    this.#membershipChanged(`${peerURL} is let in as a learner`);
  }

  promote(id: string): void {
    this.#assertLed();
    const record = this.#records.find(member => member.id === id);
    if (record === undefined) throw new Error('etcdserver: member not found');
    const process = this.#processOf(record);
    const servesMs = process?.servesMs ?? Number.POSITIVE_INFINITY;
    if (this.#options.world.time.nowMs < servesMs + CAUGHT_UP_AFTER_MS)
      throw new Error('etcdserver: can only promote a learner member which is in sync with leader');
    record.isLearner = false;
    const voters = this.#records.filter(({ isLearner }) => !isLearner).length;
    this.wasComplete ||= voters === this.#options.nodes().filter(({ isControlPlane }) => isControlPlane).length;
    this.#membershipChanged(`${record.name} has a vote`);
  }

  remove(id: string): void {
    this.#assertLed();
    const index = this.#records.findIndex(member => member.id === id);
    const [record] = index < 0 ? [] : this.#records.splice(index, 1);
    if (record === undefined) throw new Error('etcdserver: member not found');
    this.#membershipChanged(`${record.name} is removed`);
  }

  async #run(process: Process): Promise<void> {
    const { world } = this.#options;
    const { node } = process;
    const beganMs = world.time.nowMs;
    let told: string | undefined;
    for (;;) {
      const problem = this.#admit(process);
      if (problem === undefined) break;
      if (problem !== told) world.tell(`etcd on ${node.name} ends at once: ${problem}`);
      told = problem;
      await new Promise<void>(resolve => this.#waiting.push(resolve));
      const waitedMs = world.time.nowMs - beganMs;
      await world.time.after(Math.min(LONGEST_BACKOFF_MS, Math.max(SHORTEST_BACKOFF_MS, waitedMs)));
      if (process.isOver) return;
      process.pod.hands.set('etcd', node.begin());
    }
    this.#settle(true);
    await world.time.after(SERVES_AFTER_MS);
    if (process.isOver) return;
    process.servesMs = world.time.nowMs;
    process.ready(true);
    this.#settle(true);
  }

  /** Why the process cannot begin; undefined: it has. */
  #admit(process: Process): string | undefined {
    const { node, pod } = process;
    const known = node.disk.text(DATA_FILE);
    if (known !== undefined) {
      const record = this.#records.find(({ id }) => id === known);
      if (record === undefined) return 'it has been removed from the cluster';
      if (this.#lost.has(known)) return 'its log was lost: tocommit is out of range';
      process.id = known;
      return undefined;
    }
    const { name, initialCluster, state } = environmentOf(pod.manifest);
    const peerURL = `https://${node.address}:${PEER_PORT}`;
    let record: MemberRecord | undefined;
    if (state === 'new') {
      if (this.#records.length > 0) {
        this.disaster ??= `etcd on ${node.name} founds a second cluster`;
        return 'there is a cluster already';
      }
      record = { id: String(++this.#ids), name, peerURLs: [peerURL], clientURLs: [], isLearner: false };
      this.#records.push(record);
    } else {
      const leader = this.#leader;
      if (leader === undefined || !this.#reach(leader, process)) return 'cannot fetch cluster info from peers';
      if (initialCluster.length !== this.#records.length) return 'member count is unequal';
      record = this.#records.find(({ peerURLs }) => peerURLs.includes(peerURL));
      if (record === undefined) return 'no member has its address';
      if (record.name !== '') {
        // It takes up its old name, and cannot live up to what it has said under it.
        node.disk.write(DATA_FILE, record.id, 0o600);
        this.#lost.add(record.id);
        return this.#admit(process);
      }
    }
    record.name = name;
    record.clientURLs = [`https://${node.address}:${CLIENT_PORT}`];
    node.disk.write(DATA_FILE, record.id, 0o600);
    process.id = record.id;
    return undefined;
  }

  #assertLed(): void {
    if (this.#leader === undefined) throw new Error('etcdserver: no leader');
  }

  #membershipChanged(what: string): void {
    const { world } = this.#options;
    world.tell(`etcd: ${what}`);
    world.time.changed();
    this.#settle(true);
    this.#wakeWaiting();
  }

  #wakeWaiting(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #processOf({ id }: MemberRecord): Process | undefined {
    return this.#processes.values().find(process => process.id === id && !process.isOver);
  }

  #reach(a: Process, b: Process): boolean {
    const { whyNot } = this.#options;
    return whyNot(PEERS, a.node, b.node) === undefined && whyNot(PEERS, b.node, a.node) === undefined;
  }

  /** Keeps the leader that a majority reaches, or finds another one: at once where the last one has said goodbye. */
  #settle(isOrderly: boolean): void {
    if (this.#leader !== undefined && this.#isMajority(this.#leader)) return;
    const had = this.#leader;
    this.#leader = undefined;
    if (had !== undefined && !isOrderly) {
      this.#options.world.tell(`etcd: ${had.node.name} leads no more`);
      this.#electLater();
    } else if (!this.#isElecting) this.#elect();
  }

  #electLater(): void {
    if (this.#isElecting) return;
    this.#isElecting = true;
    void this.#options.world.time.after(ELECTION_MS).then(() => {
      this.#isElecting = false;
      this.#elect();
    });
  }

  #elect(): void {
    const voters = this.#records.filter(({ isLearner }) => !isLearner);
    const candidates = voters.flatMap(record => this.#processOf(record) ?? []);
    const leader = candidates.find(candidate => this.#isMajority(candidate));
    if (leader === undefined) return;
    this.#leader = leader;
    this.term++;
    const { world } = this.#options;
    world.tell(`etcd: ${leader.node.name} leads, term ${this.term}`);
    world.time.changed();
    this.#wakeWaiting();
  }

  #isMajority(leader: Process): boolean {
    if (leader.isOver) return false;
    const voters = this.#records.filter(({ isLearner }) => !isLearner);
    if (!voters.some(({ id }) => id === leader.id)) return false;
    const reached = voters.filter(record => {
      const process = this.#processOf(record);
      return process !== undefined && (process === leader || this.#reach(leader, process));
    });
    return reached.length > voters.length / 2;
  }
}

interface MemberRecord extends Member {
  name: string;
  clientURLs: readonly string[];
  isLearner: boolean;
}

/** An etcd that runs on a node, let in or not. */
interface Process {
  readonly node: TwinNode;
  readonly pod: RunningPod;
  readonly ready: (isReady: boolean) => void;
  isOver: boolean;
  /** Since when it answers clients. */
  servesMs: number | undefined;
  id: string | undefined;
}

interface EtcdEnvironment {
  readonly name: string;
  readonly initialCluster: readonly string[];
  readonly state: string;
}

/** What the manifest tells the process. */
function environmentOf({ spec }: Pod): EtcdEnvironment {
  const env = spec?.containers.find(({ name }) => name === 'etcd')?.env ?? [];
  const valueOf = (name: string): string => {
    const value = env.find(variable => variable.name === name)?.value ?? '';
    return value.replace(/\$\(([^)]+)\)/g, (_all, other: string) => valueOf(other));
  };
  return {
    name: valueOf('ETCD_NAME'),
    initialCluster: valueOf('ETCD_INITIAL_CLUSTER').split(','),
    state: valueOf('ETCD_INITIAL_CLUSTER_STATE'),
  };
}
