/** One node with its agent, on an API in process; time is virtual, the kubelet pretends. */

import type { Engine } from '../../../src/api/api.ts';
import { startEngine } from '../../../src/api/api.ts';
import { silentLog } from '../../../src/controller/log.ts';
import type { Host } from '../../../src/host/port.ts';
import { VirtualClock } from '../../../src/kube/clock.ts';
import { minutes } from '../../../src/kube/duration.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { getIfPresent } from '../../../src/kube/get.ts';
import type { Kube } from '../../../src/kube/port.ts';
import {
  CERTIFICATE_SIGNING_REQUESTS,
  CONFIG_MAPS,
  LEASES,
  NAMESPACES,
  NODES,
  PODS,
} from '../../../src/kube/resource.ts';
import { formatRfc3339, formatRfc3339Micro } from '../../../src/kube/time.ts';
import { KubeadmAgent } from '../../../src/kubeadm/node/agent.ts';
import type { Ask } from '../../../src/kubeadm/node/ask.ts';
import { ManifestText } from '../../../src/kubeadm/node/manifest-text.ts';
import { placesOf } from '../../../src/kubeadm/node/places.ts';
import { type NodeReport, reportOf } from '../../../src/kubeadm/report.ts';
import { encodeWanted, type Wanted, wantedKey } from '../../../src/kubeadm/wanted.ts';
import type { CertificateAndKey } from '../../../src/pki/authority.ts';
import { readCertificateRequest } from '../../../src/pki/csr.ts';
import { issueForPublicKey } from '../../../src/pki/issue.ts';
import { encodeCertificates, readCertificates } from '../../../src/pki/pem.ts';
import { seededKeys } from '../../../src/pki/seeded-keys.ts';
import { caDigest } from '../../../src/trust/receipts.ts';
import {
  ADDRESS,
  clusterSigners,
  installNode,
  kubeletStat,
  manifest,
  memoryNode,
  NODE,
  PKI,
  type Signers,
} from './kubeadm-node.ts';

export const NOW = new Date('2026-03-01T00:00:00Z');
const PATIENCE_MS = minutes(30);
const COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd'];

export interface Life {
  stop(): Promise<void>;
}

export interface SceneOptions {
  readonly name?: string;
  readonly role?: Scene['role'];
  readonly leafDays?: number;
  /** Those of the cluster, where they are not the usual ones. */
  readonly signers?: Signers;
  readonly install?: boolean;
  /** What somebody does there before anything of it is started. */
  readonly did?: ((scene: Scene) => Promise<void>) | undefined;
}

/** When kubeadm was there. */
export const MADE = new Date(NOW.getTime() - minutes(60 * 24));

export class Scene {
  readonly clock = new VirtualClock(NOW);
  readonly host = memoryNode({ now: () => this.clock.now(), onService: () => this.#restartKubelet() });
  readonly engine: Engine;
  readonly name: string;
  readonly signers: Signers;
  readonly role: 'control-plane' | 'worker';
  readonly #keys = seededKeys('agent');
  /** What the kubelet has started, by what the manifest said. */
  readonly #started = new Map<string, string>();
  /** How often it has started each. */
  readonly starts = new Map<string, number>();
  #kubeletStarts = 0;
  /** Answers of servers that fail, by address. */
  readonly failing = new Map<string, number>();
  readonly writes: string[] = [];
  /** Who signs requests of kubelets; nobody when undefined. */
  requestsSigner: CertificateAndKey | undefined;

  private constructor(engine: Engine, name: string, signers: Signers, role: Scene['role']) {
    this.engine = engine;
    this.name = name;
    this.signers = signers;
    this.role = role;
  }

  static async create(options: SceneOptions = {}): Promise<Scene> {
    const { name = NODE, role = 'control-plane', leafDays = 365 } = options;
    const signers = options.signers ?? (await clusterSigners(MADE));
    const clock = { current: undefined as VirtualClock | undefined };
    const engine = await startEngine({ clock: lazily(() => clock.current) });
    const scene = new Scene(engine, name, signers, role);
    clock.current = scene.clock;
    for (const namespace of ['rotunda-pki', 'kube-node-lease']) {
      if ((await getIfPresent(engine.kube, NAMESPACES, { name: namespace })) === undefined)
        await engine.kube.create(NAMESPACES, { metadata: { name: namespace } });
    }
    await engine.kube.create(NODES, { metadata: { name } });
    // Files are older than the processes that read them.
    scene.clock.jumpTo(MADE);
    if (options.install !== false) await installNode(scene.host, { signers, now: MADE, role, leafDays, name });
    await options.did?.(scene);
    scene.clock.jumpTo(NOW);
    await scene.#restartKubelet();
    scene.host.asked.length = 0;
    return scene;
  }

  get kube(): Kube {
    return this.engine.kube;
  }

  /** Starts the agent. `before` is asked ahead of every call of the API. */
  run(host: Host = this.host, before: (verb: string) => void = () => {}): Life {
    const stop = new AbortController();
    const kube = this.#watched(before);
    const agent = new KubeadmAgent({
      kube,
      nodeKube: kube,
      host,
      nodeName: this.name,
      places: placesOf(),
      keys: this.#keys,
      ask: this.#ask,
      clock: this.clock,
      log: silentLog,
      events: recordingEvents(),
    });
    const running = agent.run(stop.signal);
    running.catch(() => {});
    return {
      stop: async () => {
        stop.abort(new Error('the test ends the agent'));
        let isOver = false;
        const over = running.finally(() => (isOver = true));
        over.catch(() => {});
        while (!isOver) {
          await this.#quiet();
          const next = this.clock.nextWait();
          if (!isOver && next !== undefined) await this.clock.advanceTo(next);
        }
        await over;
      },
    };
  }

  async want(wanted: Partial<Wanted> & { readonly round: string }): Promise<void> {
    const { namespace, name } = wantedKey(this.name);
    const data = encodeWanted({ publishes: [], signers: {}, isSeparate: false, leaves: {}, ...wanted });
    const there = await getIfPresent(this.kube, CONFIG_MAPS, { namespace, name });
    if (there === undefined) await this.kube.create(CONFIG_MAPS, { metadata: { namespace, name }, data });
    else await this.kube.update(CONFIG_MAPS, { ...there, data });
  }

  /** What is wanted of a CA. */
  signer(...cas: readonly CertificateAndKey[]): { bundle: string; signs: string } {
    const certificates = cas.flatMap(({ chain }) => chain.slice(0, 1));
    const [first] = certificates;
    return { bundle: encodeCertificates(certificates), signs: first === undefined ? '' : caDigest(first) };
  }

  async report(): Promise<NodeReport | undefined> {
    return reportOf(await this.kube.get(NODES, { name: this.name }));
  }

  /** The report that tells of every process. */
  whole(): Promise<NodeReport> {
    const expected = this.role === 'worker' ? 1 : 1 + COMPONENTS.length;
    return this.until('a whole report', async () => {
      const report = await this.report();
      return report !== undefined && Object.keys(report.processes).length === expected ? report : undefined;
    });
  }

  async done(round: string): Promise<NodeReport> {
    return this.until(`round ${round} is done`, async () => {
      const report = await this.report();
      return report?.done === round ? report : undefined;
    });
  }

  async problem(pattern: RegExp): Promise<string> {
    return this.until(`a problem ${pattern}`, async () => {
      const { problem = '' } = (await this.report()) ?? {};
      return pattern.test(problem) ? problem : undefined;
    });
  }

  /** Lets time pass until something is there. */
  async until<T>(
    what: string,
    find: () => Promise<T | undefined | false> | T | undefined | false,
    withinMs = PATIENCE_MS,
  ): Promise<T> {
    const end = this.clock.now().getTime() + withinMs;
    for (;;) {
      await this.#quiet();
      const found = await find();
      if (found !== undefined && found !== false) return found;
      const next = this.clock.nextWait();
      if (next === undefined || next.getTime() > end) {
        throw new Error(`not within ${withinMs} ms: ${what}; ${JSON.stringify(await this.report())}`);
      }
      await this.clock.advanceTo(next);
    }
  }

  /** Until nothing moves any more for a minute. */
  async rest(): Promise<void> {
    const end = this.clock.now().getTime() + minutes(1);
    for (;;) {
      await this.#quiet();
      const next = this.clock.nextWait();
      if (next === undefined || next.getTime() > end) break;
      await this.clock.advanceTo(next);
    }
    await this.#quiet();
  }

  async text(path: string): Promise<string> {
    return (await this.host.files.read(path))?.toString() ?? '';
  }

  async certificate(path: string) {
    const [certificate] = readCertificates(await this.text(path)).certificates;
    if (certificate === undefined) throw new Error(`no certificate in ${path}`);
    return certificate;
  }

  async close(): Promise<void> {
    await this.engine.close();
  }

  #watched(before: (verb: string) => void): Kube {
    return new Proxy(this.kube, {
      get: (target, name: keyof Kube) => {
        if (name === 'watch') return target.watch.bind(target);
        return async (...args: never[]) => {
          before(name);
          if (!['get', 'list'].includes(name)) this.writes.push(name);
          return (target[name] as (...args: never[]) => Promise<unknown>).apply(target, args);
        };
      },
    });
  }

  async #quiet(): Promise<void> {
    for (let calm = 0; calm < 6; calm++) {
      await new Promise(resolve => setImmediate(resolve));
      await this.engine.idle();
    }
    await this.#kubelet();
    for (let calm = 0; calm < 4; calm++) {
      await new Promise(resolve => setImmediate(resolve));
      await this.engine.idle();
    }
  }

  /** What a kubelet does: starts static pods that changed, shows them, renews its lease; and what signs its requests. */
  async #kubelet(): Promise<void> {
    const lease = { namespace: 'kube-node-lease', name: this.name };
    const renewTime = formatRfc3339Micro(this.clock.now()) as never;
    const there = await getIfPresent(this.kube, LEASES, lease);
    if (there === undefined) await this.kube.create(LEASES, { metadata: lease, spec: { renewTime } });
    else await this.kube.update(LEASES, { ...there, spec: { ...there.spec, renewTime } });
    for (const component of COMPONENTS) {
      const text = await this.text(manifest(component));
      if (text !== '' && this.#started.get(component) !== text) await this.#start(component, text);
    }
    if (this.requestsSigner !== undefined) await this.#signRequests(this.requestsSigner);
  }

  async #start(component: string, text: string): Promise<void> {
    this.#started.set(component, text);
    this.starts.set(component, (this.starts.get(component) ?? 0) + 1);
    const { pod } = new ManifestText(text, component);
    const key = { namespace: 'kube-system', name: `${component}-${this.name}` };
    const startedAt = formatRfc3339(this.clock.now()) as never;
    const mirror = {
      metadata: { ...key, annotations: { ...pod.metadata?.annotations }, labels: pod.metadata?.labels ?? {} },
      spec: { ...pod.spec, containers: pod.spec?.containers ?? [], nodeName: this.name },
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        containerStatuses: [
          { name: component, image: '', imageID: '', ready: true, restartCount: 0, state: { running: { startedAt } } },
        ],
      },
    };
    const there = await getIfPresent(this.kube, PODS, key);
    if (there !== undefined) await this.kube.delete(PODS, key, { gracePeriodSeconds: 0 });
    const created = await this.kube.create(PODS, mirror);
    await this.kube.updateStatus(PODS, { ...created, status: mirror.status });
  }

  async #restartKubelet(): Promise<void> {
    this.#kubeletStarts++;
    const bootMs = Math.floor(NOW.getTime() / 1000) * 1000 - minutes(60 * 24);
    const ticks = Math.floor((this.clock.now().getTime() - bootMs) / 10);
    if ((await this.host.files.stat('/proc/77')) !== undefined)
      await this.host.files.write('/proc/77/stat', Buffer.from(kubeletStat(ticks)));
  }

  get kubeletStarts(): number {
    return this.#kubeletStarts;
  }

  async #signRequests(signer: CertificateAndKey): Promise<void> {
    const { items } = await this.kube.list(CERTIFICATE_SIGNING_REQUESTS);
    for (const request of items) {
      if (request.status?.certificate !== undefined) continue;
      const { publicKey, subject } = readCertificateRequest(Buffer.from(request.spec.request, 'base64').toString());
      const now = this.clock.now();
      const certificate = await issueForPublicKey({
        keys: this.#keys,
        now: new Date(now.getTime() - minutes(5) + 1000),
        lifetimeMs: minutes(60 * 24 * 365),
        signer,
        publicKey,
        subject,
        extKeyUsages: ['clientAuth'],
      });
      const issued = Buffer.from(encodeCertificates([certificate])).toString('base64');
      const at = formatRfc3339(now) as never;
      const approved = { type: 'Approved', status: 'True', reason: 'test', lastUpdateTime: at };
      await this.kube.patch(
        CERTIFICATE_SIGNING_REQUESTS,
        { name: request.metadata?.name ?? '' },
        { type: 'merge', body: { status: { conditions: [approved] } } },
        { subresource: 'approval' },
      );
      await this.kube.patch(
        CERTIFICATE_SIGNING_REQUESTS,
        { name: request.metadata?.name ?? '' },
        { type: 'merge', body: { status: { certificate: issued } } },
        { subresource: 'status' },
      );
    }
  }

  /** Servers that show what is on the disk. */
  readonly #ask: Ask = async ({ url }) => {
    const { port, pathname } = new URL(url);
    const file = { 6443: 'apiserver', 2379: 'etcd/server', 2380: 'etcd/peer' }[port] ?? 'apiserver';
    const shown = caDigest(await this.certificate(`${PKI}/${file}.crt`));
    const status = this.failing.get(pathname) ?? 200;
    const members = [{ name: this.name, clientURLs: [`https://${ADDRESS}:2379`] }];
    return { status, shown, body: pathname.endsWith('/list') ? JSON.stringify({ members }) : '{"health":"true"}' };
  };
}

function lazily(find: () => VirtualClock | undefined) {
  return {
    now: () => find()?.now() ?? NOW,
    until: (at: Date, signal?: AbortSignal) => find()?.until(at, signal) ?? Promise.resolve(),
  };
}

/** A scene for one test. */
export async function withScene(
  options: Parameters<typeof Scene.create>[0],
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const scene = await Scene.create(options);
  try {
    await play(scene);
  } finally {
    await scene.close();
  }
}
