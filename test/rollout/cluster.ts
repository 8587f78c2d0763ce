import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { dump, load } from 'js-yaml';
import type { ConfigMap, Event, Secret } from 'kubernetes-types/core/v1.d.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  EVENTS,
  type KubeObject,
  NAMESPACES,
  SECRETS,
} from '../../src/kube/resource.ts';
import { findMarked, killProcess } from '../../src/local/process.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { issueClient } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';
import { RESOURCE_DIRECTORY } from '../../src/staticpod/config.ts';
import { type NodeStatus, readNodeStatus } from '../../src/staticpod/node-status.ts';
import type { StaticPodOperatorStatus } from '../../src/staticpod/operator.ts';
import { end, firstLine } from '../tools/child.ts';
import { eventually, inTime, PATIENCE_MS } from '../tools/eventually.ts';
import {
  addressOf,
  adminKubeconfig,
  nodeNames,
  nodeRoot,
  OPERATOR_USER,
  operatorCa,
  operatorKubeconfig,
} from './layout.ts';
import {
  base64,
  MANIFEST,
  NAMESPACE,
  newPair,
  newSigner,
  OPERATORS,
  operandObjects,
  POD_CONFIG_MAP,
  PORT,
  pairData,
  REVISIONED_SECRET,
} from './operand.ts';

const DEFINITION = new URL('../../manifests/crds/operator.openshift.io_kubeapiservers.yaml', import.meta.url);
/** Few, so that pruning can be watched. */
export const REVISION_LIMITS = { succeededRevisionLimit: 2, failedRevisionLimit: 2 };

export interface ClusterOptions {
  /** Called before the first node starts. */
  readonly prepare?: ((dir: string) => void) | undefined;
}

/** What a stand-in says of itself. */
export interface Loaded {
  readonly pid: number;
  readonly inputs: readonly { readonly name: string; readonly certificates?: readonly string[] }[];
}

/** Three control-plane nodes, an API and an operator, all of them real processes below one directory. */
export class Cluster {
  readonly dir: string;
  readonly nodes: readonly string[] = nodeNames();
  readonly signer: CertificateAndKey;
  readonly #children = new Map<Program, ChildProcess>();
  #kube: HttpKube | undefined;

  private constructor(dir: string, signer: CertificateAndKey) {
    this.dir = dir;
    this.signer = signer;
  }

  /** Starts everything and waits until all nodes run the first revision. */
  static async start({ prepare = () => {} }: ClusterOptions = {}): Promise<Cluster> {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-rollout-'));
    const cluster = new Cluster(dir, await newSigner());
    try {
      for (const node of cluster.nodes) mkdirSync(nodeRoot(dir, node), { recursive: true });
      prepare(dir);
      writeFileSync(operatorCa(dir), encodeCertificates(cluster.signer.chain));
      await cluster.startSupervisor();
      cluster.#kube = new HttpKube(await loadAccess({ path: adminKubeconfig(dir) }));
      await cluster.#fill();
      cluster.startOperator();
      await cluster.converged(1);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  get kube(): HttpKube {
    if (this.#kube === undefined) throw new Error('the cluster has no API yet');
    return this.#kube;
  }

  async startSupervisor(): Promise<void> {
    const child = this.#start('supervisor');
    await firstLine(child, () => this.log('supervisor'));
  }

  startOperator(): void {
    this.#start('operator');
  }

  /** `kill -9`, and gone. */
  async kill(program: Program): Promise<void> {
    const child = this.#children.get(program);
    this.#children.delete(program);
    if (child !== undefined) await end(child, 'SIGKILL');
  }

  pid(program: Program): number {
    return this.#children.get(program)?.pid ?? 0;
  }

  /** How many requests the API has had over the network, by user. */
  async requests(): Promise<Record<string, number>> {
    const child = this.#children.get('supervisor');
    child?.send('requests');
    const answer = once(child as ChildProcess, 'message') as Promise<[Record<string, number>]>;
    const [counts] = await inTime('the counts of the supervisor', answer, () => this.log('supervisor'));
    return counts;
  }

  /** The processes of installers that run now. */
  installers(): number[] {
    return this.processes()
      .filter(({ mark }) => mark.endsWith('/installer'))
      .map(({ pid }) => pid);
  }

  /** All processes of pods. */
  processes(node?: string): { pid: number; mark: string }[] {
    return findMarked(node === undefined ? `${this.dir}/nodes/` : `${nodeRoot(this.dir, node)}//`);
  }

  /** Ends every process and removes everything. */
  async stop(): Promise<void> {
    await this.kill('operator');
    await this.kill('supervisor');
    await eventually('all processes of pods are gone', () => {
      const left = this.processes();
      for (const { pid } of left) killProcess(pid);
      return left.length === 0;
    });
    await this.#kube?.close();
    unmountBelow(this.dir);
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }

  async status(): Promise<StaticPodOperatorStatus> {
    return (await this.kube.get(OPERATORS, { name: 'cluster' })).status ?? {};
  }

  async nodeStatuses(): Promise<NodeStatus[]> {
    return ((await this.status()).nodeStatuses ?? []).map(readNodeStatus);
  }

  async events(): Promise<Event[]> {
    return (await this.kube.list(EVENTS, { namespace: NAMESPACE })).items;
  }

  /** Waits until all nodes run at least this revision and the operator says so. Resolves with the revision. */
  async converged(atLeast: number): Promise<number> {
    return this.eventually(`all nodes at revision ${atLeast}`, async () => {
      const { latestAvailableRevision = 0, nodeStatuses = [] } = await this.status();
      const nodes = nodeStatuses.map(readNodeStatus);
      const isThere = nodes.every(
        ({ currentRevision, targetRevision }) => currentRevision === latestAvailableRevision && targetRevision === 0,
      );
      return latestAvailableRevision >= atLeast && nodes.length === this.nodes.length && isThere
        ? latestAvailableRevision
        : undefined;
    });
  }

  /** Looks until `find` gives something; an API that does not answer has not given anything yet. */
  async eventually<T>(what: string, find: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
    try {
      return await eventually(what, () => Promise.resolve(find()).catch(ignoreUnreachable));
    } catch (error) {
      const status = await this.status().catch((reason: unknown) => reason);
      throw new Error(
        `${(error as Error).message}\nstatus: ${JSON.stringify(status, null, 1)}\noperator: ${this.log('operator')}\nsupervisor: ${this.log('supervisor')}`,
        { cause: error },
      );
    }
  }

  /** The condition of that type, as soon as it has the status. */
  async condition(type: string, status: 'True' | 'False'): Promise<{ reason: string; message: string }> {
    return this.eventually(`condition ${type} is ${status}`, async () => {
      const found = (await this.status()).conditions?.find(other => other.type === type);
      return found?.status === status ? { reason: found.reason ?? '', message: found.message ?? '' } : undefined;
    });
  }

  /** An event with that reason and text. */
  async event(reason: string, text: RegExp): Promise<Event> {
    return this.eventually(`event ${reason} ${text}`, async () =>
      (await this.events()).find(event => event.reason === reason && text.test(event.message ?? '')),
    );
  }

  /** Puts a new key pair into the revisioned Secret: a new revision is due. Resolves with the data. */
  async changeRevisioned(data?: Record<string, string>): Promise<Record<string, string>> {
    const next = data ?? pairData(await newPair(this.signer));
    await this.setSecret(REVISIONED_SECRET, next);
    return next;
  }

  async setSecret(name: string, data: Record<string, string>): Promise<Secret> {
    return this.kube.patch(
      SECRETS,
      { namespace: NAMESPACE, name },
      { type: 'json', body: [{ op: 'replace', path: '/data', value: data }] },
    );
  }

  async setConfigMap(name: string, data: Record<string, string>): Promise<ConfigMap> {
    return this.kube.patch(
      CONFIG_MAPS,
      { namespace: NAMESPACE, name },
      { type: 'json', body: [{ op: 'replace', path: '/data', value: data }] },
    );
  }

  /** Where a path of a node is on this machine. */
  path(node: string, path: string): string {
    return join(nodeRoot(this.dir, node), path);
  }

  manifestPath(node: string): string {
    return this.path(node, `etc/kubernetes/manifests/${MANIFEST}`);
  }

  revisionPath(node: string, revision: number, path = ''): string {
    return this.path(node, `${RESOURCE_DIRECTORY}/${POD_CONFIG_MAP}-${revision}/${path}`);
  }

  /** A handshake of its own with the server on a node: the certificate it shows, and what it has loaded. */
  async ask(node: string): Promise<{ peer: string; loaded: Loaded }> {
    const { peer, text } = await ask(addressOf(this.dir, node), '/rotunda.dev/loaded');
    return { peer, loaded: JSON.parse(text) as Loaded };
  }

  async pids(): Promise<number[]> {
    return Promise.all(this.nodes.map(async node => (await this.ask(node)).loaded.pid));
  }

  log(program: Program): string {
    const text = readFileSync(this.#logPath(program), 'utf8');
    return text.slice(-3000);
  }

  #logPath(program: Program): string {
    return join(this.dir, `${program}.log`);
  }

  #start(program: Program): ChildProcess {
    const log = openSync(this.#logPath(program), 'a');
    const path = fileURLToPath(new URL(`${program}.ts`, import.meta.url));
    const stdout = program === 'supervisor' ? 'pipe' : log;
    const child = spawn(process.execPath, [path, this.dir], { stdio: ['ignore', stdout, log, 'ipc'] });
    closeSync(log);
    this.#children.set(program, child);
    return child;
  }

  async #fill(): Promise<void> {
    const { kube, dir, signer } = this;
    const user = { name: OPERATOR_USER, groups: ['system:masters'] };
    const issued = { keys: systemKeys, algorithm: 'P-256', now: new Date(), lifetimeMs: 24 * 3_600_000 } as const;
    writeFileSync(
      operatorKubeconfig(dir),
      withClient(readFileSync(adminKubeconfig(dir), 'utf8'), await issueClient({ ...issued, signer, user })),
    );
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, load(readFileSync(DEFINITION, 'utf8')) as KubeObject);
    await kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
    const { configMaps, secrets } = await operandObjects(signer);
    for (const object of configMaps) await kube.create(CONFIG_MAPS, object);
    for (const object of secrets) await kube.create(SECRETS, object);
    const operator = {
      metadata: { name: 'cluster' },
      spec: { managementState: 'Managed' as const, ...REVISION_LIMITS },
    };
    await this.eventually('the kind of the operator resource', () => kube.create(OPERATORS, operator));
  }
}

export type Program = 'supervisor' | 'operator';

/** SHA-256 of the certificate of a pair, as servers report it. */
export function fingerprint({ chain }: CertificateAndKey): string {
  return createHash('sha256')
    .update(chain[0]?.der ?? '')
    .digest('hex');
}

function ask(host: string, path: string): Promise<{ peer: string; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host, port: PORT, path, servername: '', agent: false, rejectUnauthorized: false, timeout: PATIENCE_MS },
      response => {
        const { raw } = (response.socket as TLSSocket).getPeerCertificate();
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('end', () =>
          resolve({ peer: createHash('sha256').update(raw).digest('hex'), text: Buffer.concat(chunks).toString() }),
        );
        response.once('error', reject);
      },
    );
    sent.once('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.once('error', reject);
    sent.end();
  });
}

/** Disks that a test has mounted. */
function unmountBelow(dir: string): void {
  const mounts = existsSync('/proc/mounts') ? readFileSync('/proc/mounts', 'utf8').split('\n') : [];
  for (const mount of mounts) {
    const path = mount.split(' ')[1] ?? '';
    if (path.startsWith(`${dir}/`)) execFileSync('umount', [path]);
  }
}

function ignoreUnreachable(_error: unknown): undefined {
  return undefined;
}

/** The same cluster with another identity. */
function withClient(kubeconfig: string, { chain, key }: CertificateAndKey): string {
  const config = load(kubeconfig) as { users: [{ user: object }] };
  config.users[0].user = {
    'client-certificate-data': base64(encodeCertificates(chain)),
    'client-key-data': base64(encodePrivateKey(key)),
  };
  return dump(config);
}
