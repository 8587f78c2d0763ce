import type { KeyObject } from 'node:crypto';
import type { ConfigMap, Node, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER, NOT_BEFORE, REQUESTED_AT } from '../../certrotation/annotations.ts';
import { dataText, TLS_CERT, TLS_SECRET, withAnnotations, withCertificate } from '../../certrotation/secret.ts';
import { silentLog } from '../../controller/log.ts';
import type { Answer, Question } from '../../hand-over/ask.ts';
import { nextKey } from '../../hand-over/family.ts';
import { TAKEN_BACK, TURNED_ROUND, WAIVED } from '../../hand-over/names.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { recordingEvents } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import { MemoryKube } from '../../kube/memory.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, type Resource, SECRETS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { issueSigner } from '../../pki/issue.ts';
import type { Keys } from '../../pki/keys.ts';
import { certificatesIn, encodeCertificates } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { caDigest, signingKey } from '../../trust/receipts.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type SignerName } from '../chains.ts';
import { CLUSTER_RECORD, type ClusterStatus, encodeSettings, type PodsPolicy, statusOf } from '../cluster-record.ts';
import { AUTHENTICATION, CLUSTER_INFO, ETCD_CLIENT_PORT, ETCD_PEER_PORT, ROOT_CA } from '../names.ts';
import { SERVICE_ACCOUNT } from '../service-account-keys.ts';
import { decodeWanted, type Wanted, wantedKey } from '../wanted.ts';
import { ModelNode } from './model-node.ts';
import { ModelTokens } from './model-tokens.ts';
import { RETIRE, signerKey } from './names.ts';
import { Pass } from './pass.ts';

const START = '2026-01-01T00:00:00Z';

/**
 * A cluster that kubeadm made, in memory and on a virtual clock: nodes whose agents obey, stop, die and come back, and the real passes of
 * the operator, which may stop between any two of their writes. What must never be is looked for after everything that happens.
 */
export class ModelCluster {
  readonly clock = new VirtualClock(START);
  readonly events = recordingEvents();
  readonly kube = new MemoryKube();
  readonly story: string[] = [];
  readonly nodes = new Map<string, ModelNode>();
  readonly waived = new Map<string, string>();
  readonly pairs = new Map<SignerName, CertificateAndKey>();
  readonly tokens: ModelTokens;
  pods: readonly Pod[] = [];
  /** Who was waived or has just joined, and may have missed something. */
  readonly #late = new Set<string>();
  /** What informers of the operator know of nodes: may be behind. */
  #known: readonly Node[] = [];
  #writesLeft = Number.POSITIVE_INFINITY;
  readonly #keys: Keys;
  #pass: Pass | undefined;

  private constructor(keys: Keys, tokenKey: KeyObject) {
    this.#keys = keys;
    const tell = (what: string) => this.tell(what);
    this.tokens = new ModelTokens(this.kube, tokenKey, () => this.now(), tell);
  }

  static async make(
    options: { seed?: string; controlPlane?: number; workers?: number; pods?: PodsPolicy; keysOnNodes?: boolean } = {},
  ): Promise<ModelCluster> {
    const { seed = 'model', controlPlane = 3, workers = 1, pods = 'wait', keysOnNodes = false } = options;
    const keys = seededKeys(seed);
    const cluster = new ModelCluster(keys, await keys.generate('P-256'));
    for (const { name, commonName } of KUBEADM_SIGNERS) {
      const now = cluster.now();
      const lifetimeMs = days(3650);
      cluster.pairs.set(
        name,
        await issueSigner({ commonName, lifetimeMs, now, keys: cluster.#keys, algorithm: 'P-256' }),
      );
    }
    for (let i = 0; i < controlPlane; i++) cluster.join(`cp-${i}`, 'control-plane');
    for (let i = 0; i < workers; i++) cluster.join(`worker-${i}`, 'worker');
    // Those are there from the beginning, and have missed nothing.
    cluster.#late.clear();
    const settings = { certificatesDirectory: '/etc/kubernetes/pki', keysOnNodes, refresh: 0.666, pods };
    await cluster.kube.create(CONFIG_MAPS, {
      metadata: { ...CLUSTER_RECORD },
      data: encodeSettings({ ...settings, publishFrom: 'cp-0' }),
    });
    const ca = cluster.ca('ca');
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: '',
          cluster: {
            'certificate-authority-data': Buffer.from(encodeCertificates([ca])).toString('base64'),
            server: 'https://api:6443',
          },
        },
      ],
    };
    await cluster.kube.create(CONFIG_MAPS, {
      metadata: { ...CLUSTER_INFO },
      data: { kubeconfig: JSON.stringify(kubeconfig) },
    });
    await cluster.kube.create(CONFIG_MAPS, { metadata: { ...AUTHENTICATION }, data: {} });
    await cluster.sight();
    cluster.restartOperator();
    return cluster;
  }

  now(): Date {
    return this.clock.now();
  }

  node(name: string): ModelNode {
    const node = this.nodes.get(name);
    if (node === undefined) throw new RangeError(`no node ${name}`);
    return node;
  }

  /** The CA that the cluster began with. */
  ca(name: SignerName): Certificate {
    return this.pairs.get(name)?.chain[0] as Certificate;
  }

  /** A node that joins has what the first one has: all that kubeadm copies. */
  join(name: string, role: 'control-plane' | 'worker'): void {
    const first = [...this.nodes.values()].find(node => node.role === 'control-plane');
    const cas = Object.fromEntries(
      KUBEADM_SIGNERS.map(({ name: signer }) => [signer, first?.cas[signer]?.[0] ?? this.ca(signer)]),
    );
    const keys = first?.serviceAccount ?? this.tokens.files;
    this.nodes.set(name, new ModelNode(name, role, { cas, keys }, this.now()));
    // It may have been given the files of an hour ago: it gets those of now before it counts (spec 80, 8).
    this.#late.add(name);
    this.tell(`${name} joins`);
  }

  delete(name: string): void {
    this.nodes.delete(name);
    this.waived.delete(name);
    this.tell(`${name} is deleted`);
  }

  tell(what: string): void {
    this.story.push(`${this.now().toISOString()} ${what}`);
  }

  restartOperator(): void {
    this.#pass = new Pass({
      kube: this.#stopping(),
      clock: this.clock,
      keys: this.#keys,
      events: this.events,
      log: silentLog,
      nodes: () => this.#known,
      staticPods: () => [],
      pods: async () => this.pods,
      ask: question => this.#answer(question),
      look: async () => [],
    });
  }

  /** What informers know is what agents have written. */
  async sight(): Promise<void> {
    this.#known = [...this.nodes.values()].map(node => {
      const seen = node.asNode();
      const waived = this.waived.get(node.name);
      if (waived !== undefined) Object.assign(seen.metadata?.annotations ?? {}, { [WAIVED]: waived });
      return seen;
    });
    // kube-apiserver publishes what it has loaded.
    const api = [...this.nodes.values()].find(({ role, isUp }) => role === 'control-plane' && isUp);
    const found = await getIfPresent(this.kube, CONFIG_MAPS, AUTHENTICATION);
    if (api === undefined || found === undefined) return;
    const text = encodeCertificates(api.cas['front-proxy-ca'] ?? []);
    if (found.data?.['requestheader-client-ca-file'] !== text)
      await this.kube.update(CONFIG_MAPS, { ...found, data: { 'requestheader-client-ca-file': text } });
    await this.#publishRootCa(api);
    await this.tokens.fill(this.counted());
  }

  /** kube-controller-manager gives every namespace with pods what it has begun with, byte for byte. */
  /** Those that have missed nothing. */
  counted(): ModelNode[] {
    return [...this.nodes.values()].filter(({ isUp, name }) => isUp && !this.#late.has(name));
  }

  async #publishRootCa({ processes }: ModelNode): Promise<void> {
    const text = encodeCertificates(processes.get('kube-controller-manager')?.began.ca ?? []);
    for (const namespace of new Set(this.pods.map(({ metadata }) => metadata?.namespace ?? ''))) {
      const metadata = { ...ROOT_CA, namespace, managedFields: [{ time: formatRfc3339(this.now()) }] };
      const found = await getIfPresent(this.kube, CONFIG_MAPS, { namespace, name: ROOT_CA.name });
      const wanted = { metadata, data: { 'ca.crt': text } };
      if (found === undefined) await this.kube.create(CONFIG_MAPS, wanted);
      else if (found.data?.['ca.crt'] !== text) await this.kube.update(CONFIG_MAPS, { ...found, ...wanted });
    }
  }

  async wanted(name: string): Promise<Wanted | undefined> {
    return decodeWanted(await getIfPresent(this.kube, CONFIG_MAPS, wantedKey(name)));
  }

  /** The agent of a node does so many things. */
  async act(name: string, times = 1): Promise<boolean> {
    let isActive = false;
    for (let left = times; left > 0; left--) {
      const node = this.nodes.get(name);
      const wanted = await this.wanted(name);
      if (node === undefined || wanted === undefined || !node.isUp) return isActive;
      await this.#publish(node, wanted);
      if (!node.act(wanted, this.now())) break;
      isActive = true;
      this.check();
    }
    return isActive;
  }

  async #publish(node: ModelNode, wanted: Wanted): Promise<void> {
    for (const name of wanted.publishes) {
      if (node.done === wanted.round) continue;
      if (name === SERVICE_ACCOUNT) {
        await this.tokens.publish(node);
        continue;
      }
      const pair = this.pairs.get(name);
      const key = signerKey(name);
      if (pair === undefined || (await getIfPresent(this.kube, SECRETS, key)) !== undefined) continue;
      const record = await this.kube.get(CONFIG_MAPS, CLUSTER_RECORD);
      const secret = withCertificate({ metadata: { ...key }, type: TLS_SECRET }, pair, 'signer', days(3650) * 0.8);
      const isKept = record.data?.keysOnNodes === 'true';
      await this.kube.create(SECRETS, isKept ? { ...secret, data: { ...secret.data, 'tls.key': '' } } : secret);
    }
  }

  /** One pass of the operator, which may be killed after so many writes. When it wants to look again. */
  async pass(writes = Number.POSITIVE_INFINITY): Promise<Date | undefined> {
    this.#writesLeft = writes;
    let againAt: Date | undefined;
    try {
      againAt = (await this.#pass?.run())?.againAt;
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      this.tell('the operator is killed');
      this.restartOperator();
    }
    this.check();
    await this.checkRounds();
    return againAt;
  }

  /** Operator and agents work until nothing changes any more, or the time is over; everybody sees everything at once. */
  async settle(withinMs: number = days(1), until: () => Promise<boolean> = async () => false): Promise<void> {
    const end = this.now().getTime() + withinMs;
    for (let turn = 0; turn < 20_000; turn++) {
      if (await until()) return;
      await this.sight();
      const againAt = await this.pass();
      let isActive = false;
      for (const name of this.nodes.keys()) isActive = (await this.act(name)) || isActive;
      if (isActive || againAt === undefined || againAt <= this.now()) {
        this.clock.jumpTo(new Date(this.now().getTime() + 1000));
        continue;
      }
      if (this.now().getTime() >= end) return;
      this.clock.jumpTo(new Date(Math.min(end, againAt.getTime())));
    }
    throw new Error(`it does not come to rest: ${JSON.stringify(await this.status())}`);
  }

  async status(): Promise<ClusterStatus | undefined> {
    return statusOf(await getIfPresent(this.kube, CONFIG_MAPS, CLUSTER_RECORD));
  }

  secret(key: { namespace: string; name: string }): Promise<Secret | undefined> {
    return getIfPresent(this.kube, SECRETS, key);
  }

  /** `rotunda rotate`. */
  async rotate(name: SignerName): Promise<void> {
    this.tell(`somebody asks for another ${name}`);
    await this.note(signerKey(name), {
      [REQUESTED_AT]: formatRfc3339(this.now()),
      [NOT_AFTER]: undefined,
      [NOT_BEFORE]: undefined,
    });
  }

  takeBack(name: SignerName): Promise<void> {
    this.tell(`somebody takes the hand-over of ${name} back`);
    return this.note(nextKey(signerKey(name)), { [TAKEN_BACK]: formatRfc3339(this.now()) });
  }

  turnRound(name: SignerName): Promise<void> {
    this.tell(`somebody turns the hand-over of ${name} round`);
    return this.note(signerKey(name), { [TURNED_ROUND]: formatRfc3339(this.now()) });
  }

  retire(name: SignerName): Promise<void> {
    this.tell(`somebody retires what was before ${name}`);
    return this.note(signerKey(name), { [RETIRE]: formatRfc3339(this.now()) });
  }

  async note(key: { namespace: string; name: string }, notes: Record<string, string | undefined>): Promise<void> {
    const found = await this.secret(key);
    if (found !== undefined) await this.kube.update(SECRETS, withAnnotations(found, notes));
  }

  /** From now on nobody waits for it; what it misses meanwhile it gets when it is back (HO-8). */
  waive(name: string): void {
    this.waived.set(name, formatRfc3339(this.now()));
    this.#late.add(name);
    this.tell(`${name} is waived`);
  }

  /** With everybody well: no hand-over is in the middle, nothing differs, and everybody accepts everybody. */
  async assertAtRest(): Promise<void> {
    const status = await this.status();
    const { families, serviceAccount } = status ?? {};
    const moving = Object.entries({ ...families, ...(serviceAccount && { sa: serviceAccount }) }).filter(
      ([, { phase }]) => !['Steady', 'Retiring'].includes(phase),
    );
    if (status?.adopted !== true || status.round !== undefined || moving.length > 0 || status.waitingFor.length > 0)
      throw new Error(`it is not at rest: ${JSON.stringify(status)}`);
    for (const { name } of KUBEADM_SIGNERS) {
      const current = await this.current(name);
      for (const node of this.nodes.values()) {
        const [first] = node.cas[name] ?? [];
        if (node.role === 'control-plane' && !(current && first?.der.equals(current.der)))
          throw new Error(`${node.name} does not sign with the ${name} in use`);
      }
    }
    const keys = await this.tokens.expected();
    for (const { name, role, serviceAccount } of this.nodes.values()) {
      if (role === 'control-plane' && keys !== undefined && serviceAccount.signs !== keys.signs)
        throw new Error(`${name} does not sign tokens with the key in use`);
    }
    this.#late.clear();
    this.check();
  }

  /** Nobody who is up refuses what anybody who is up shows (spec 90, HO-2 and HO-3); who is late counts once everything is at rest. */
  check(): void {
    const counted = this.counted();
    const refusal = refusalBetween(counted, counted) ?? this.tokens.refusal(counted);
    if (refusal !== undefined) throw new Error(refusal);
  }

  /** Never two control-plane nodes at work at the same time (KA-6). */
  async checkRounds(): Promise<void> {
    const atWork: string[] = [];
    for (const node of this.nodes.values()) {
      if (node.role !== 'control-plane') continue;
      const wanted = await this.wanted(node.name);
      if (wanted !== undefined && wanted.round !== node.done) atWork.push(node.name);
    }
    if (atWork.length > 1) throw new Error(`${atWork.join(' and ')} are at work at the same time`);
  }

  /** Everything that is trusted on a node, by common name. */
  trusted(node: string, signer: SignerName): string[] {
    return (this.node(node).cas[signer] ?? []).map(({ subject }) => subject.commonName);
  }

  async current(name: SignerName): Promise<Certificate | undefined> {
    const secret = await this.secret(signerKey(name));
    return certificatesIn(secret && dataText(secret, TLS_CERT))[0];
  }

  async #answer({ host, port }: Question): Promise<Answer> {
    const node = this.nodes.get(host);
    if (node === undefined || !node.isUp) return { kind: 'silent', reason: 'ECONNREFUSED' };
    const isEtcd = port === ETCD_CLIENT_PORT || port === ETCD_PEER_PORT;
    const cas = isEtcd
      ? (node.processes.get('etcd')?.began['etcd-ca'] ?? [])
      : [...(node.cas.ca ?? []), ...(node.cas['front-proxy-ca'] ?? [])];
    return { kind: 'loaded', authorities: cas.map(({ subject }) => subject.der) };
  }

  /** The API in the hands of an operator that may be killed before any of its writes. */
  #stopping(): Kube {
    const { kube } = this;
    const counted = () => {
      if (this.#writesLeft-- <= 0) throw new Killed();
    };
    const told = (verb: string, resource: Resource, object: KubeObject) => {
      counted();
      this.tell(`${verb} ${resource.kind} ${object.metadata?.name ?? ''}${detailOf(object)}`);
    };
    return new Proxy(kube, {
      get: (target, name: keyof Kube) => {
        if (name === 'create' || name === 'update') {
          return async (resource: Resource, object: KubeObject) => {
            told(name, resource, object);
            return target[name](resource, object);
          };
        }
        if (name === 'delete') {
          return async (...call: Parameters<Kube['delete']>) => {
            counted();
            this.tell(`delete ${call[0].kind} ${call[1].name}`);
            return target.delete(...call);
          };
        }
        const found = target[name];
        return typeof found === 'function' ? (found as (...call: unknown[]) => unknown).bind(target) : found;
      },
    });
  }
}

class Killed extends Error {}

function refusalBetween(verifiers: readonly ModelNode[], presenters: readonly ModelNode[]): string | undefined {
  const trusts = verifiers.flatMap(node => node.trusts());
  for (const node of presenters) {
    for (const [name, { issuer }] of node.leaves) {
      const signer = KUBEADM_CHAINS.find(chain => chain.name === name)?.signer;
      const refusing = trusts.find(
        ({ signer: of, cas }) => of === signer && !cas.some(ca => signingKey(ca) === signingKey(issuer)),
      );
      if (refusing !== undefined)
        return `${refusing.who} refuses ${name} of ${node.name}, signed by ${issuer.subject.commonName}`;
    }
  }
  return undefined;
}

function detailOf(object: KubeObject): string {
  const wanted = decodeWanted(object as ConfigMap);
  if (wanted === undefined) return '';
  const signers = Object.entries(wanted.signers).map(([name, { bundle }]) => {
    const names = certificatesIn(bundle).map(ca => `${ca.subject.commonName} ${caDigest(ca).slice(0, 4)}`);
    return `${name}=[${names.join(', ')}]`;
  });
  return ` ${wanted.round} ${signers.join(' ')} ${wanted.isSeparate ? 'separate' : ''} ${Object.keys(wanted.leaves).length} leaves`;
}
