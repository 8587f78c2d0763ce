import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { dataText, TLS_CERT } from '../certrotation/secret.ts';
import { SECRETS } from '../kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../kube-apiserver/chains.ts';
import { certificatesIn } from '../pki/pem.ts';
import type { Cluster } from './cluster.ts';
import type { Look, Refusal } from './edges.ts';
import { EtcdInvariants, sickInEtcd } from './etcd-invariants.ts';
import type { Excuses } from './excuses.ts';
import { brokenInPools } from './machine-invariants.ts';

/** Something that must never be true, and was. */
export interface Violation {
  readonly atMs: number;
  readonly rule: string;
  readonly what: string;
  /** What it is about, in names that last: the same fault in another cluster has the same. */
  readonly about: string;
  readonly refusal?: Refusal | undefined;
}

/** What has to be true after every event. */
export class Invariants {
  readonly #cluster: Cluster;
  readonly #excuses: Excuses;
  readonly violations: Violation[] = [];
  readonly #open = new Set<string>();
  readonly #etcd: EtcdInvariants;
  #wereAllUp = false;
  inevitable = 0;

  constructor(cluster: Cluster, excuses: Excuses) {
    this.#cluster = cluster;
    this.#excuses = excuses;
    this.#etcd = new EtcdInvariants(cluster, node => excuses.isOff(node, cluster.time.nowMs));
  }

  /** From now on. */
  begin(): void {
    this.check(this.#cluster.look);
  }

  check(look: Look): void {
    this.#checkRefusals(look.refusals);
    this.#checkServers();
    for (const { rule, what } of this.#etcd.broken()) this.#violated(rule, what);
    const { time } = this.#cluster;
    const isOff = (node: string) => this.#excuses.isOff(node, time.nowMs);
    for (const what of brokenInPools(this.#cluster, isOff)) this.#violated('a pool keeps its machines', what);
  }

  /** What has to be true when nothing has gone wrong for long enough. */
  checkEnd(): void {
    const { api, time } = this.#cluster;
    for (const { signer, target } of KUBE_APISERVER_CHAINS) {
      for (const { namespace, name } of [signer, target]) {
        const stored = api.stored<Secret>(SECRETS, { namespace, name });
        const [leaf] = certificatesIn(stored && dataText(stored, TLS_CERT));
        if (leaf === undefined) this.#violated('everything heals', `${namespace}/${name} holds no certificate`);
        else if (leaf.notAfter.getTime() < time.nowMs)
          this.#violated('everything heals', `${namespace}/${name} ended at ${leaf.notAfter.toISOString()}`);
      }
    }
    const isOff = (node: string) => this.#excuses.isOff(node, time.nowMs);
    for (const what of sickInEtcd(this.#cluster, isOff)) this.#violated('everything heals', what);
    for (const node of this.#cluster.nodes) {
      if (this.#excuses.isOff(node.name, time.nowMs) || !node.isControlPlane) continue;
      if (node.pods.get('kube-apiserver')?.isReady !== true)
        this.#violated('everything heals', `kube-apiserver on ${node.name} is not ready`);
    }
  }

  #checkRefusals(refusals: readonly Refusal[]): void {
    const { nowMs } = this.#cluster.time;
    const now = new Set<string>();
    for (const refusal of refusals) {
      const { edge, by, refuser, refused, reason } = refusal;
      const id = `${edge} ${by} ${refuser} ${refused}`;
      const excuse = this.#excuses.whyRefused(refusal, nowMs);
      now.add(`${id} ${excuse === undefined}`);
      if (this.#open.has(`${id} ${excuse === undefined}`)) continue;
      const what = `${refuser} refuses ${refused} (${edge}): ${reason}`;
      if (excuse === undefined) this.#violated('nobody refuses anybody', what, edge, refusal);
      else {
        this.inevitable++;
        this.#cluster.tell(`${what}; inevitable: ${excuse}`);
      }
    }
    this.#open.clear();
    for (const id of now) this.#open.add(id);
  }

  /** One control-plane node at a time is down through us. */
  #checkServers(): void {
    const { nodes, time } = this.#cluster;
    const control = nodes.filter(({ isControlPlane }) => isControlPlane);
    const down = control.filter(({ pods }) => pods.get('kube-apiserver')?.isReady !== true);
    this.#wereAllUp ||= down.length === 0;
    const ours = down.filter(({ name }) => !this.#excuses.isOff(name, time.nowMs));
    if (!this.#wereAllUp || ours.length === 0 || down.length < 2) return;
    const names = down.map(({ name }) => name).join(' and ');
    this.#violated('one control-plane node at a time', `kube-apiserver is down on ${names}`);
  }

  #violated(rule: string, what: string, about = rule, refusal?: Refusal): void {
    if (this.violations.some(known => known.rule === rule && known.what === what)) return;
    const violation = {
      atMs: this.#cluster.time.nowMs,
      rule,
      what,
      about,
      ...(refusal === undefined ? {} : { refusal }),
    };
    this.violations.push(violation);
    this.#cluster.tell(`BROKEN: ${rule}: ${what}`);
  }
}
