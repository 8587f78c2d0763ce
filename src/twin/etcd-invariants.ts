import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { dataText, TLS_CERT } from '../certrotation/secret.ts';
import { FAMILY_TABLE } from '../etcd/cert-table.ts';
import { ETCD_NAMESPACE } from '../etcd/names.ts';
import { FAMILIES } from '../etcd/profile.ts';
import { minutes } from '../kube/duration.ts';
import { SECRETS } from '../kube/resource.ts';
import { certificatesIn } from '../pki/pem.ts';
import type { Cluster } from './cluster.ts';

/** Whether a machine is down, or was until a moment ago, for a reason that is not ours. */
export type IsOff = (node: string) => boolean;

/** An installer that was begun when all was well takes so long to reach its member. */
const DECIDED_BEFORE_MS = minutes(1);

/** What must never be true of etcd. Nothing is asked before its cluster was complete. */
export class EtcdInvariants {
  readonly #cluster: Cluster;
  readonly #isOff: IsOff;
  readonly #downSinceMs = new Map<string, number>();

  constructor(cluster: Cluster, isOff: IsOff) {
    this.#cluster = cluster;
    this.#isOff = isOff;
  }

  broken(): { readonly rule: string; readonly what: string }[] {
    const { etcd } = this.#cluster;
    if (!etcd.wasComplete) return [];
    const down = this.#down();
    const names = down.map(({ name }) => name).join(' and ');
    const found: { rule: string; what: string }[] = [];
    if (etcd.disaster !== undefined) found.push({ rule: MAJORITY, what: etcd.disaster });
    if (down.length > 1 && this.#isThroughUs(down)) found.push({ rule: ONE_NODE, what: `etcd is down on ${names}` });
    if (etcd.isLost && (down.length === 0 || this.#isThroughUs(down)))
      found.push({ rule: MAJORITY, what: `nobody leads${down.length === 0 ? '' : `, and ${names} are down`}` });
    return found;
  }

  #down(): Down[] {
    const { nodes, time } = this.#cluster;
    const down: Down[] = [];
    for (const { name, isControlPlane, pods } of nodes) {
      if (!isControlPlane || pods.get('etcd')?.isReady === true) {
        this.#downSinceMs.delete(name);
        continue;
      }
      const sinceMs = this.#downSinceMs.get(name) ?? time.nowMs;
      this.#downSinceMs.set(name, sinceMs);
      down.push({ name, sinceMs });
    }
    return down;
  }

  /** Whoever went down last, while another one had been down for long enough to know of it, should have waited. */
  #isThroughUs(down: readonly Down[]): boolean {
    const [first, ...others] = down.toSorted((a, b) => a.sinceMs - b.sinceMs);
    const last = others.at(-1);
    if (first === undefined || last === undefined || this.#isOff(last.name)) return false;
    return !this.#isOff(first.name) || last.sinceMs - first.sinceMs > DECIDED_BEFORE_MS;
  }
}

const MAJORITY = 'etcd keeps its majority';
const ONE_NODE = 'one control-plane node at a time';

interface Down {
  readonly name: string;
  readonly sinceMs: number;
}

/** What of etcd has to be well when nothing has gone wrong for long enough, and is not. */
export function sickInEtcd({ etcd, api, nodes, time }: Cluster, isOff: IsOff): string[] {
  const found: string[] = [];
  if (etcd.isLost) found.push('etcd has no leader');
  for (const { name, isControlPlane } of nodes) {
    if (!isControlPlane || isOff(name)) continue;
    const member = etcd.members.find(one => one.name === name);
    if (member === undefined || member.isLearner) found.push(`etcd on ${name} has no vote`);
  }
  for (const family of FAMILIES) {
    const { signer, client } = FAMILY_TABLE[family];
    for (const name of [signer, client.secret]) {
      const stored = api.stored<Secret>(SECRETS, { namespace: ETCD_NAMESPACE, name });
      const [certificate] = certificatesIn(stored && dataText(stored, TLS_CERT));
      if (certificate === undefined || certificate.notAfter.getTime() < time.nowMs)
        found.push(`${ETCD_NAMESPACE}/${name} holds no certificate that is valid`);
    }
  }
  return found;
}
