/**
 * Seed 001, second scenario, on local nodes: the signer of kube-apiserver's client certificate rotates, the bundle grows,
 * ControllerConfig changes, and `kubelet-ca.crt` below the root of every node holds both CAs, with all pools paused. Kubelet-like
 * TLS servers that read that file take both generations of the client all the time.
 */

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { startApi } from '../../../src/api/api.ts';
import { BUNDLE_KEY } from '../../../src/certrotation/bundle.ts';
import { liveObjects } from '../../../src/certrotation/ensure.ts';
import { ObjectLocks } from '../../../src/certrotation/locks.ts';
import { reconcileUnit } from '../../../src/certrotation/reconcile.ts';
import { dataText } from '../../../src/certrotation/secret.ts';
import { silentLog } from '../../../src/controller/log.ts';
import { CertificateWriter } from '../../../src/daemon/certificates/controller.ts';
import { KUBELET_CA } from '../../../src/daemon/certificates/paths.ts';
import { installKubelet } from '../../../src/daemon/certificates/testing.ts';
import { NodeWriter } from '../../../src/daemon/node-writer.ts';
import { localHost } from '../../../src/host/local.ts';
import { HttpKube } from '../../../src/kube/client.ts';
import { systemClock } from '../../../src/kube/clock.ts';
import { days, minutes } from '../../../src/kube/duration.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { loadAccess } from '../../../src/kube/kubeconfig.ts';
import type { Kube } from '../../../src/kube/port.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, type ObjectKey, SECRETS } from '../../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../../../src/kube-apiserver/chains.ts';
import { CLIENT_CA, combineBundles } from '../../../src/kube-apiserver/combined-bundles.ts';
import { OPERAND_NAMESPACE } from '../../../src/kube-apiserver/namespaces.ts';
import { hostnameSources } from '../../../src/kube-apiserver/rotation/follow-hostnames.ts';
import { rotationUnits } from '../../../src/kube-apiserver/rotation/units.ts';
import { certificate, TestCluster } from '../../../src/machine-config/testing.ts';
import { MACHINE_CONFIG_POOLS } from '../../../src/machine-config-api/machine-config.ts';
import {
  CONFIG_MANAGED_NAMESPACE,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  LAST_SYNCED_CONTROLLER_CONFIG,
} from '../../../src/machine-config-api/names.ts';
import { issueServing, issueSigner } from '../../../src/pki/issue.ts';
import { systemKeys } from '../../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readCertificates } from '../../../src/pki/pem.ts';
import { eventually, PATIENCE_MS } from '../../tools/eventually.ts';
import { KubeletServer, type Pair } from './kubelet-server.ts';

const NAMES = ['master-0', 'master-1', 'master-2', 'worker-0', 'worker-1'];
/** Away while the signer rotates. */
const LATE = 'worker-1';
const HANDSHAKES_EACH = 30;

test('a rotated signer reaches all nodes of paused pools; both generations are let in all the time', {
  timeout: 2 * PATIENCE_MS,
}, async t => {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-signer-rotation-'));
  const cluster = await TestCluster.create(async () => {
    const api = await startApi({ dir });
    return { kube: api.kube, idle: () => api.engine.idle(), close: () => api.close() };
  });
  const agents: Agent[] = [];
  t.after(async () => {
    await Promise.all(agents.map(agent => agent.stop()));
    await cluster.stop();
    rmSync(dir, { recursive: true });
  });
  const chain = await Chain.create(cluster.kube);
  await chain.publish();
  const first = await chain.client();
  cluster.startOperator();
  cluster.startController();
  await cluster.until('a pool is rendered', async () => (await cluster.rendered('worker')).length === 1, minutes(2));
  await pausePools(cluster);
  const serving = await servingPair();
  const serverCa = await certificate('server-ca');
  for (const name of NAMES) {
    const role = name.replace(/-.*/, '');
    await cluster.addNode(name, { [`node-role.kubernetes.io/${role}`]: '' }, (await cluster.rendered(role))[0]);
    agents.push(await Agent.create(name, join(dir, 'nodes', name), join(dir, 'kubeconfig'), serverCa));
  }
  for (const agent of agents) agent.start();
  await eventually('every node has the first CA', () => allTrust(agents, first.signer));
  const before = await stateOf(cluster);
  for (const agent of agents) await agent.serve(serving);
  const traffic = new Traffic(agents, serving.ca);
  traffic.add('first', first.pair, () => true);
  const late = agents.find(({ name }) => name === LATE) as Agent;
  await late.stopWriting();

  await chain.forceSigner();
  await chain.publish();
  const signers = await chain.bundle();
  assert.equal(signers.length, 2);
  const second = signers.find(pem => pem !== first.signer) as string;
  await eventually('ControllerConfig has both', async () => (await kubeletCaOf(cluster)).includes(second));
  assert.ok((await kubeletCaOf(cluster)).includes(first.signer));
  const others = agents.filter(agent => agent !== late);
  await eventually('every other node has both', () => allTrust(others, first.signer, second));
  assert.equal(await late.trusts(second), false);
  late.start();
  await eventually('the one that was away has both', () => late.trusts(first.signer, second));
  const { metadata } = await cluster.controllerConfig();
  await eventually('every node says so', async () => {
    const { items } = await cluster.kube.list(NODES);
    return items.every(
      node => node.metadata?.annotations?.[LAST_SYNCED_CONTROLLER_CONFIG] === metadata?.resourceVersion,
    );
  });
  await chain.forceTarget();
  const next = await chain.client();
  assert.equal(next.signer, second, 'the new leaf is of the new signer');
  traffic.add('second', next.pair, agent => agent.kubelet?.trusted.includes(second) ?? false);
  await eventually('there were enough handshakes', () => traffic.each(HANDSHAKES_EACH));
  await traffic.stop();

  assert.deepEqual(traffic.failures, []);
  t.diagnostic(`${traffic.total} handshakes, none refused`);
  for (const agent of agents) {
    assert.equal(agent.kubelet?.reloads, 1, `${agent.name} read its file again once`);
    assert.deepEqual(agent.asked, [], `nothing was asked of services of ${agent.name}`);
    assert.deepEqual(agent.events.events, []);
  }
  assert.deepEqual(await stateOf(cluster), before, 'no drain, no cordon, no new config');
});

/** The chain of kube-apiserver's client certificate for kubelets, kept by the code of its operator. */
class Chain {
  readonly #kube: Kube;
  readonly #unit = rotationUnits({
    dayMs: days(1),
    hostnames: hostnameSources(),
    keyAlgorithm: 'P-256',
    chains: KUBE_APISERVER_CHAINS.filter(({ controller }) => controller === 'KubeAPIServerToKubeletClientCert'),
  })[0];

  private constructor(kube: Kube) {
    this.#kube = kube;
  }

  static async create(kube: Kube): Promise<Chain> {
    await kube.create(NAMESPACES, { metadata: { name: OPERAND_NAMESPACE } });
    const chain = new Chain(kube);
    await chain.#sync();
    return chain;
  }

  async #sync(): Promise<void> {
    const kube = this.#kube;
    const world = {
      kube,
      objects: liveObjects(kube),
      clock: systemClock,
      keys: systemKeys,
      locks: new ObjectLocks(),
      events: recordingEvents(),
    };
    await reconcileUnit(this.#required, world);
  }

  get #required() {
    assert.ok(this.#unit);
    return this.#unit;
  }

  /** What the operator publishes for whoever verifies its clients. */
  async publish(): Promise<void> {
    const { items } = await this.#kube.list(CONFIG_MAPS);
    const find = (key: ObjectKey) =>
      items.find(({ metadata }) => metadata?.name === key.name && metadata?.namespace === key.namespace);
    const combined = combineBundles(CLIENT_CA, find, new Date());
    assert.ok(combined.action === 'publish');
    const metadata = { namespace: CONFIG_MANAGED_NAMESPACE, name: 'kube-apiserver-client-ca' };
    await this.#kube.update(CONFIG_MAPS, { metadata, data: { [BUNDLE_KEY]: combined.text } });
  }

  async bundle(): Promise<string[]> {
    const { namespace, name } = this.#required.bundle;
    const { data } = await this.#kube.get(CONFIG_MAPS, { namespace, name });
    return readCertificates(data?.[BUNDLE_KEY] ?? '').certificates.map(one => encodeCertificates([one]));
  }

  /** The client certificate in use and the CA that signed it. */
  async client(): Promise<{ pair: Pair; signer: string }> {
    const { target, signer } = this.#required;
    const leaf = await this.#kube.get(SECRETS, { namespace: target.namespace, name: target.name });
    const authority = await this.#kube.get(SECRETS, { namespace: signer.namespace, name: signer.name });
    const pair = { cert: dataText(leaf, 'tls.crt') ?? '', key: dataText(leaf, 'tls.key') ?? '' };
    return { pair, signer: dataText(authority, 'tls.crt') ?? '' };
  }

  forceSigner = () => this.#force(this.#required.signer);
  forceTarget = () => this.#force(this.#required.target);

  /** What an administrator does: without its annotations a certificate counts as expired. */
  async #force({ namespace, name }: { namespace: string; name: string }): Promise<void> {
    const body = { metadata: { annotations: null } };
    await this.#kube.patch(SECRETS, { namespace, name }, { type: 'merge', body });
    await this.#sync();
  }
}

/** One node: a directory, the certificate writer over HTTPS, and something that reads its file. */
class Agent {
  readonly name: string;
  readonly asked: string[] = [];
  readonly events = recordingEvents();
  kubelet: KubeletServer | undefined;
  readonly #root: string;
  readonly #kube: HttpKube;
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  private constructor(name: string, root: string, kube: HttpKube) {
    this.name = name;
    this.#root = root;
    this.#kube = kube;
  }

  static async create(name: string, root: string, kubeconfig: string, serverCa: string): Promise<Agent> {
    mkdirSync(root, { recursive: true });
    const agent = new Agent(name, root, new HttpKube(await loadAccess({ path: kubeconfig })));
    await installKubelet(agent.#host(), serverCa);
    agent.asked.length = 0;
    return agent;
  }

  start(): void {
    this.#stop = new AbortController();
    const writer = new CertificateWriter({
      kube: this.#kube,
      host: this.#host(),
      nodeName: this.name,
      nodeWriter: new NodeWriter({ kube: this.#kube, nodeName: this.name }),
      clock: systemClock,
      log: silentLog,
      events: this.events,
    });
    this.#running = writer.run(this.#stop.signal);
  }

  async serve(serving: Pair): Promise<void> {
    this.kubelet = await KubeletServer.start(join(this.#root, KUBELET_CA), { cert: serving.cert, key: serving.key });
  }

  async trusts(...signers: string[]): Promise<boolean> {
    const text = String(await this.#host().files.read(KUBELET_CA));
    return signers.every(pem => text.includes(pem));
  }

  async stopWriting(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async stop(): Promise<void> {
    await this.stopWriting();
    await this.kubelet?.stop();
    await this.#kube.close();
  }

  #host() {
    const record = (what: string) => void this.asked.push(what);
    return localHost({
      root: this.#root,
      onService: (verb, unit) => record(`${verb} ${unit}`),
      onReboot: rationale => record(`reboot: ${rationale}`),
    });
  }
}

/** Connects to every kubelet with every client, again and again, and counts. */
class Traffic {
  readonly failures: string[] = [];
  readonly #agents: readonly Agent[];
  readonly #ca: string;
  readonly #counts = new Map<string, number>();
  readonly #loops: Promise<void>[] = [];
  #isOver = false;

  constructor(agents: readonly Agent[], ca: string) {
    this.#agents = agents;
    this.#ca = ca;
  }

  get total(): number {
    return this.#counts.values().reduce((sum, count) => sum + count, 0);
  }

  /** `isDue` says from when on an agent's kubelet must take this client; from then on it always must. */
  add(generation: string, client: Pair, isDue: (agent: Agent) => boolean): void {
    for (const agent of this.#agents)
      this.#loops.push(this.#loop(`${generation} at ${agent.name}`, agent, client, isDue));
  }

  async #loop(what: string, agent: Agent, client: Pair, isDue: (agent: Agent) => boolean): Promise<void> {
    this.#counts.set(what, 0);
    let isDueNow = false;
    while (!this.#isOver) {
      isDueNow ||= isDue(agent);
      if (isDueNow) {
        const refused = await agent.kubelet?.handshake(client, this.#ca).catch((error: Error) => error);
        if (refused instanceof Error) this.failures.push(`${what}: ${refused.message}`);
        this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
      }
      await setTimeout(5);
    }
  }

  each(count: number): boolean {
    return this.#counts.values().every(done => done >= count);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }
}

async function allTrust(agents: readonly Agent[], ...signers: string[]): Promise<boolean> {
  return (await Promise.all(agents.map(agent => agent.trusts(...signers)))).every(Boolean);
}

async function servingPair(): Promise<Pair & { ca: string }> {
  const now = new Date();
  const signer = await issueSigner({
    keys: systemKeys,
    now,
    commonName: 'kubelet-serving',
    lifetimeMs: days(2),
    algorithm: 'P-256',
  });
  const serving = await issueServing({
    keys: systemKeys,
    now,
    signer,
    hostnames: ['localhost'],
    lifetimeMs: days(1),
    algorithm: 'P-256',
  });
  return {
    cert: encodeCertificates(serving.chain),
    key: encodePrivateKey(serving.key),
    ca: encodeCertificates(signer.chain),
  };
}

async function pausePools({ kube }: TestCluster): Promise<void> {
  for (const name of ['master', 'worker']) {
    await kube.patch(MACHINE_CONFIG_POOLS, { name }, { type: 'merge', body: { spec: { paused: true } } });
  }
}

async function kubeletCaOf(cluster: TestCluster): Promise<string> {
  const { spec } = await cluster.controllerConfig();
  return Buffer.from(spec?.kubeAPIServerServingCAData ?? '', 'base64').toString();
}

/** What an update would change. */
async function stateOf(cluster: TestCluster): Promise<unknown> {
  const { items } = await cluster.kube.list(NODES);
  const nodes = items.map(({ metadata, spec }) => {
    const { [DESIRED_CONFIG]: config, [DESIRED_DRAIN]: drain } = metadata?.annotations ?? {};
    return [metadata?.name, config, drain, spec?.unschedulable];
  });
  return { nodes, rendered: [await cluster.rendered('master'), await cluster.rendered('worker')] };
}
