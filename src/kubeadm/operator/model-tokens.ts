import { createPublicKey, type KeyObject } from 'node:crypto';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { annotationsOf, withAnnotations } from '../../certrotation/secret.ts';
import { TAKEN_BACK, TURNED_ROUND } from '../../hand-over/names.ts';
import { days } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { encodePrivateKey } from '../../pki/pem.ts';
import { CLUSTER_RECORD } from '../cluster-record.ts';
import { CURRENT_SLOT, keyDigest, publicKeyDigests, SERVICE_ACCOUNT_KEYS } from '../service-account-keys.ts';
import { type AccountKeys, accountGoal, accountKeysIn } from './account-keys.ts';
import type { AccountFiles, ModelNode } from './model-node.ts';
import { KEYS_REQUESTED_AT, NO_SECRET_TOKENS, RETIRE, TOKENS_SINCE } from './names.ts';

const TOKEN_SECRET = 'kubernetes.io/service-account-token';
/** What pods get where tokens are extended, as they are by default. */
const LIFE_MS = days(365);

/** Tokens of service accounts in a model of a cluster: everybody who signs makes one at every moment, and everybody has to accept it. */
export class ModelTokens {
  readonly #kube: Kube;
  readonly #key: KeyObject;
  readonly #now: () => Date;
  readonly #tell: (what: string) => void;
  /** By the digest of the key that signed: until when the last token of it is good. */
  readonly #good = new Map<string, Date>();
  /** Somebody was told who is refused, and wants those keys gone all the same. */
  readonly #givenUp = new Set<string>();
  /** What Secrets with tokens hold, by name. */
  readonly #held = new Map<string, string>();

  constructor(kube: Kube, key: KeyObject, now: () => Date, tell: (what: string) => void) {
    this.#kube = kube;
    this.#key = key;
    this.#now = now;
    this.#tell = tell;
  }

  /** What kubeadm made: one key. */
  get files(): AccountFiles {
    const digest = keyDigest(this.#key);
    return { signs: digest, accepts: [digest] };
  }

  /** The agent of a node copies its files. */
  async publish(node: ModelNode): Promise<void> {
    const pub = createPublicKey(this.#key).export({ format: 'pem', type: 'spki' }).toString();
    if (node.serviceAccount.signs !== this.files.signs) throw new Error(`${node.name} has other keys to publish`);
    if ((await getIfPresent(this.#kube, SECRETS, SERVICE_ACCOUNT_KEYS)) !== undefined) return;
    const data = { [CURRENT_SLOT.key]: base64(encodePrivateKey(this.#key)), [CURRENT_SLOT.pub]: base64(pub) };
    await this.#kube.create(SECRETS, { metadata: { ...SERVICE_ACCOUNT_KEYS }, type: 'Opaque', data });
  }

  /** Somebody makes a Secret for a token that does not end. */
  async makeSecret(name: string): Promise<void> {
    const annotations = { 'kubernetes.io/service-account.name': 'default' };
    const metadata = { namespace: 'shop', name, annotations };
    if ((await getIfPresent(this.#kube, SECRETS, { namespace: 'shop', name })) === undefined)
      await this.#kube.create(SECRETS, { metadata, type: TOKEN_SECRET, data: {} });
  }

  /** kube-controller-manager puts tokens where there are none. */
  async fill(nodes: readonly ModelNode[]): Promise<void> {
    const signs = nodes.flatMap(({ processes }) => processes.get('kube-controller-manager')?.keys.signs ?? [])[0];
    if (signs === undefined) return;
    for (const secret of await this.#secrets()) {
      if (secret.data?.token !== undefined) continue;
      const kid = Buffer.from(signs, 'hex').toString('base64url');
      const header = Buffer.from(JSON.stringify({ alg: 'ES256', kid })).toString('base64url');
      const data = { token: base64(`${header}.e30.c2ln`) };
      await this.#kube.update(SECRETS, { ...secret, data });
      this.#held.set(secret.metadata?.name ?? '', signs);
    }
  }

  /** Everybody of these makes a token, and accepts all that are good; else says who does not. */
  refusal(nodes: readonly ModelNode[]): string | undefined {
    const now = this.#now();
    const servers = nodes.flatMap(node => {
      const api = node.processes.get('kube-apiserver');
      return api === undefined ? [] : [{ node, keys: api.keys }];
    });
    for (const { keys } of servers)
      if (keys.signs !== undefined) this.#good.set(keys.signs, new Date(now.getTime() + LIFE_MS));
    const good = [...this.#good].filter(([, end]) => end > now).map(([digest]) => digest);
    const wanted = [...good, ...this.#held.values()].filter(digest => !this.#givenUp.has(digest));
    for (const { node, keys } of servers) {
      const refused = wanted.find(digest => !keys.accepts?.includes(digest));
      if (refused !== undefined) return `kube-apiserver on ${node.name} refuses tokens of ${refused.slice(0, 8)}`;
    }
    return undefined;
  }

  /** `rotunda rotate sa`. */
  async rotate(): Promise<void> {
    this.#tell('somebody asks for other keys of service accounts');
    await this.#noteRecord(formatRfc3339(this.#now()));
  }

  takeBack(): Promise<void> {
    this.#tell('somebody takes the keys of service accounts back');
    return this.#note(TAKEN_BACK);
  }

  turnRound(): Promise<void> {
    this.#tell('somebody wants the key of service accounts before this one back');
    return this.#note(TURNED_ROUND);
  }

  /** Whoever follows the command to its end has looked into Secrets. */
  async look(): Promise<void> {
    const keys = await this.#keys();
    const since = keys?.isShown ? annotationsOf(keys.secret)[TOKENS_SINCE] : undefined;
    if (keys === undefined || since === undefined || keys.next !== undefined) return;
    if ([...this.#held.values()].every(signs => signs === keys.current.digest))
      await this.#note(NO_SECRET_TOKENS, since);
  }

  /** `rotunda rotate sa --retire`, which may be stopped before it says anything to the operator. */
  async retire(nodes: readonly ModelNode[], isStopped = false): Promise<void> {
    const keys = await this.#keys();
    if (keys?.previous === undefined || keys.next !== undefined || !keys.isShown) return;
    this.#tell('somebody retires older keys of service accounts');
    for (const secret of await this.#secrets()) {
      if (this.#held.get(secret.metadata?.name ?? '') === keys.current.digest) continue;
      await this.#kube.update(SECRETS, { ...secret, data: {} });
      this.#held.delete(secret.metadata?.name ?? '');
    }
    await this.fill(nodes);
    if (isStopped) return;
    await this.giveUp();
    await this.look();
    await this.#note(RETIRE);
  }

  /** Somebody has read who is refused from now on, and agreed. */
  async giveUp(): Promise<void> {
    const keys = await this.#keys();
    for (const digest of keys === undefined ? [] : publicKeyDigests(accountGoal(keys).publicKeys)) {
      if (digest !== keys?.current.digest) this.#givenUp.add(digest);
    }
  }

  /** What files are to be, once somebody has asked for others. */
  async expected(): Promise<AccountFiles | undefined> {
    const keys = await this.#keys();
    return keys && accountGoal(keys);
  }

  async #keys(): Promise<AccountKeys | undefined> {
    const { items } = await this.#kube.list(SECRETS, { namespace: SERVICE_ACCOUNT_KEYS.namespace });
    const keys = accountKeysIn(items);
    return keys === 'unusable' ? undefined : keys;
  }

  async #note(name: string, text = formatRfc3339(this.#now())): Promise<void> {
    const secret = await getIfPresent(this.#kube, SECRETS, SERVICE_ACCOUNT_KEYS);
    if (secret === undefined) return;
    await this.#kube.update(SECRETS, withAnnotations(secret, { [name]: text }));
  }

  async #noteRecord(text: string): Promise<void> {
    const record: ConfigMap = await this.#kube.get(CONFIG_MAPS, CLUSTER_RECORD);
    const annotations = { ...record.metadata?.annotations, [KEYS_REQUESTED_AT]: text };
    await this.#kube.update(CONFIG_MAPS, { ...record, metadata: { ...record.metadata, annotations } });
  }

  async #secrets(): Promise<Secret[]> {
    const { items } = await this.#kube.list(SECRETS);
    return items.filter(({ type }) => type === TOKEN_SECRET);
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
