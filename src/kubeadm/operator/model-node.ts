import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { minutes } from '../../kube/duration.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { readCertificates } from '../../pki/pem.ts';
import { caDigest, signingKey } from '../../trust/receipts.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type SignerName } from '../chains.ts';
import { CONTROL_PLANE_LABEL } from '../names.ts';
import { encodeReport, NODE_REPORT, type NodeReport } from '../report.ts';
import { publicKeyDigests } from '../service-account-keys.ts';
import type { Wanted } from '../wanted.ts';

export interface ModelLeaf {
  readonly digest: string;
  readonly issuer: Certificate;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Which CAs a process began with, and which it has loaded from what it reads again. */
interface ModelProcess {
  startedAt: Date;
  began: Partial<Record<SignerName, readonly Certificate[]>>;
  /** Of `sa.key` and `sa.pub`, where it reads them. */
  keys: Partial<AccountFiles>;
}

/** Keys of service accounts by their digests, as they are in files. */
export interface AccountFiles {
  readonly signs: string;
  readonly accepts: readonly string[];
}

/** Which of those files a process reads when it starts. */
const KEYS_AT_START: Readonly<Record<string, readonly (keyof AccountFiles)[]>> = {
  'kube-apiserver': ['signs', 'accepts'],
  'kube-controller-manager': ['signs'],
};
const KEY_FILES: Readonly<Record<keyof AccountFiles, string>> = { signs: 'sa.key', accepts: 'sa.pub' };

/** What a process reads only when it starts. */
const AT_START: Readonly<Record<string, readonly SignerName[]>> = {
  'kube-apiserver': ['etcd-ca'],
  'kube-controller-manager': ['ca'],
  'kube-scheduler': ['ca'],
  etcd: ['etcd-ca'],
  kubelet: ['ca'],
};

const YEAR_MS = 365 * 24 * 3_600_000;

/** A node of a kubeadm cluster without files or processes, with an agent that does one thing at a time and may stop after any of them. */
export class ModelNode {
  readonly name: string;
  readonly role: NodeReport['role'];
  isUp = true;
  /** The agent cannot go on, and says why. */
  problem: string | undefined;
  done: string | undefined;
  cas: Partial<Record<SignerName, readonly Certificate[]>>;
  isSeparate = false;
  serviceAccount: AccountFiles;
  readonly leaves = new Map<string, ModelLeaf>();
  readonly processes = new Map<string, ModelProcess>();
  /** How far behind the others its clock is. */
  clockMs = 0;
  readonly #uid = randomBytes(4).toString('hex');

  constructor(
    name: string,
    role: NodeReport['role'],
    { cas, keys }: { readonly cas: Partial<Record<SignerName, Certificate>>; readonly keys: AccountFiles },
    now: Date,
  ) {
    this.name = name;
    this.role = role;
    this.serviceAccount = keys;
    const own = KUBEADM_SIGNERS.filter(({ name: signer }) => role === 'control-plane' || signer === 'ca');
    this.cas = Object.fromEntries(own.flatMap(({ name: signer }) => (cas[signer] ? [[signer, [cas[signer]]]] : [])));
    for (const chain of KUBEADM_CHAINS) {
      if (role === 'control-plane' || chain.renewedBy === 'kubelet') this.renew(chain.name, now);
    }
    for (const process of Object.keys(AT_START)) {
      if (role === 'control-plane' || process === 'kubelet') this.start(process, now);
    }
  }

  /** Somebody makes a leaf anew, with what signs on the node. */
  renew(leaf: string, now: Date): void {
    const chain = KUBEADM_CHAINS.find(({ name }) => name === leaf);
    const [issuer] = (chain && this.cas[chain.signer]) ?? [];
    if (issuer === undefined) return;
    const notBefore = new Date(Math.floor((now.getTime() + this.clockMs - minutes(5)) / 1000) * 1000);
    const notAfter = new Date(Math.min(notBefore.getTime() + YEAR_MS, issuer.notAfter.getTime()));
    this.leaves.set(leaf, { digest: randomBytes(32).toString('hex'), issuer, notBefore, notAfter });
  }

  start(process: string, now: Date): void {
    const began = Object.fromEntries((AT_START[process] ?? []).map(signer => [signer, this.cas[signer] ?? []]));
    const keys = Object.fromEntries((KEYS_AT_START[process] ?? []).map(file => [file, this.serviceAccount[file]]));
    this.processes.set(process, { startedAt: now, began, keys });
  }

  /** What a server accepts from clients, and what a client accepts from servers, of one family. */
  trusts(): readonly { readonly who: string; readonly signer: SignerName; readonly cas: readonly Certificate[] }[] {
    const started = [...this.processes].flatMap(([who, { began }]) =>
      Object.entries(began).map(([signer, cas]) => ({
        who: `${who} on ${this.name}`,
        signer: signer as SignerName,
        cas,
      })),
    );
    const read = Object.entries(this.cas).map(([signer, cas]) => ({
      who: `servers of ${signer} on ${this.name}`,
      signer: signer as SignerName,
      cas,
    }));
    return [...started, ...read];
  }

  /** The agent does the next thing that is wanted; false: there is none. */
  act(wanted: Wanted | undefined, now: Date): boolean {
    if (!this.isUp || wanted === undefined || wanted.round === this.done || this.problem !== undefined) return false;
    if (this.role === 'control-plane' && wanted.isSeparate && !this.isSeparate) {
      this.isSeparate = true;
      return true;
    }
    for (const [name, { bundle }] of Object.entries(wanted.signers) as [SignerName, { bundle: string }][]) {
      const cas = readCertificates(bundle).certificates;
      if (same(this.cas[name], cas)) continue;
      if (name === 'ca' && cas.length > 1 && this.role === 'control-plane' && !this.isSeparate)
        throw new Error(`${this.name} is to trust two CAs before roles are separate (KA-7)`);
      this.cas[name] = cas;
      return true;
    }
    for (const [name, from] of Object.entries(wanted.leaves)) {
      const leaf = this.leaves.get(name);
      const isNew = leaf !== undefined && leaf.notBefore.getTime() + minutes(5) >= Date.parse(from);
      if (leaf === undefined || isNew) continue;
      this.renew(name, now);
      return true;
    }
    const account = wanted.serviceAccount;
    if (account !== undefined && this.role === 'control-plane') {
      const accepts = publicKeyDigests(account.publicKeys);
      // A public key comes before its private one.
      if (!isDeepStrictEqual(this.serviceAccount.accepts, accepts)) {
        this.serviceAccount = { ...this.serviceAccount, accepts };
        return true;
      }
      if (this.serviceAccount.signs !== account.signs) {
        this.serviceAccount = { ...this.serviceAccount, signs: account.signs };
        return true;
      }
    }
    if (!wanted.isSeparate && this.isSeparate) {
      this.isSeparate = false;
      return true;
    }
    for (const [process, state] of this.processes) {
      if (this.#behind(state).length === 0) continue;
      this.start(process, now);
      return true;
    }
    this.done = wanted.round;
    return true;
  }

  #behind({ began, keys }: Pick<ModelProcess, 'began' | 'keys'>): string[] {
    return [
      ...Object.entries(began).flatMap(([signer, list]) =>
        same(this.cas[signer as SignerName], list) ? [] : [`${signer}.crt`],
      ),
      ...(Object.keys(keys) as (keyof AccountFiles)[]).flatMap(file =>
        isDeepStrictEqual(keys[file], this.serviceAccount[file]) ? [] : [KEY_FILES[file]],
      ),
    ];
  }

  /** The Node as the API has it, with what the agent has seen. */
  asNode(): Node {
    const { name } = this;
    return {
      metadata: {
        name,
        uid: this.#uid,
        labels: this.role === 'control-plane' ? { [CONTROL_PLANE_LABEL]: '' } : {},
        annotations: { [NODE_REPORT]: encodeReport(this.report()) },
      },
      status: {
        addresses: [{ type: 'InternalIP', address: name }],
        conditions: [{ type: 'Ready', status: this.isUp ? 'True' : 'Unknown' }],
      },
    };
  }

  report(): NodeReport {
    const { role, done, problem, cas } = this;
    const signing = cas.ca?.[0];
    const digests = (list: readonly Certificate[] | undefined) => (list ?? []).map(caDigest);
    return {
      role,
      etcd: 'stacked',
      ...(done !== undefined && { done }),
      ...(problem !== undefined && { problem }),
      signers: Object.fromEntries(
        Object.entries(cas).map(([name, list]) => [
          name,
          { cas: digests(list), key: role === 'control-plane' ? ('fits' as const) : ('none' as const) },
        ]),
      ),
      ...(role === 'control-plane' &&
        signing !== undefined && {
          signing: { ca: caDigest(signing), isSeparate: this.isSeparate },
          serviceAccount: this.serviceAccount,
        }),
      leaves: Object.fromEntries(
        [...this.leaves].map(([name, { digest, issuer, notBefore, notAfter }]) => [
          name,
          {
            digest,
            issuer: signingKey(issuer),
            notBefore: formatRfc3339(notBefore),
            notAfter: formatRfc3339(notAfter),
          },
        ]),
      ),
      processes: Object.fromEntries(
        [...this.processes].map(([name, { startedAt, began, keys }]) => [
          name,
          {
            startedAt: formatRfc3339(startedAt),
            behind: this.#behind({ began, keys }),
            began: Object.fromEntries(Object.entries(began).map(([signer, list]) => [signer, digests(list)])),
          },
        ]),
      ),
    };
  }
}

function same(a: readonly Certificate[] | undefined, b: readonly Certificate[]): boolean {
  return a !== undefined && a.length === b.length && a.every((ca, i) => b[i]?.der.equals(ca.der));
}
