import { globSync, readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import type { ConfigMap, Node, Secret } from 'kubernetes-types/core/v1.d.ts';
import { CLUSTER_OPERATORS } from '../controller/cluster-operator-status.ts';
import { silentLog } from '../controller/log.ts';
import { VirtualClock } from '../kube/clock.ts';
import { days } from '../kube/duration.ts';
import { eventsTo, type RecordedEvent } from '../kube/events.ts';
import type { Kube } from '../kube/port.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  type KubeObject,
  NAMESPACES,
  NODES,
  SECRETS,
} from '../kube/resource.ts';
import {
  CLUSTER_VERSIONS,
  type ClusterVersion,
  DNSES,
  IMAGES,
  INFRASTRUCTURES,
  NETWORKS,
} from '../machine-config-api/cluster-config.ts';
import { CONTROLLER_CONFIGS, type ControllerConfig } from '../machine-config-api/controller-config.ts';
import {
  MACHINE_CONFIG_POOLS,
  MACHINE_CONFIGS,
  type MachineConfig,
  type MachineConfigPool,
} from '../machine-config-api/machine-config.ts';
import {
  CONFIG_MANAGED_NAMESPACE,
  CONFIG_NAMESPACE,
  CONTROLLER_CONFIG_NAME,
  CURRENT_CONFIG,
  DAEMON_STATE,
  DESIRED_CONFIG,
  KUBE_APISERVER_OPERATOR_NAMESPACE,
  KUBE_SYSTEM_NAMESPACE,
  MACHINE_API_NAMESPACE,
  MCO_NAMESPACE,
  ROLE_LABEL,
} from '../machine-config-api/names.ts';
import { issueSigner } from '../pki/issue.ts';
import { encodeCertificates } from '../pki/pem.ts';
import { seededKeys } from '../pki/seeded-keys.ts';
import { machineConfigController } from './controller/controller.ts';
import { type MachineConfigOperatorDeps, machineConfigOperator } from './operator/operator.ts';
import type { ControllerVersion } from './render/decide.ts';

/** What the tests of this room share: one moment, one complete cluster on an API that is handed in. */
export const NOW = new Date('2026-01-01T00:00:00Z');
export const VERSION: ControllerVersion = { version: 'v1', hash: 'abcdef' };
export const RELEASE = '4.16.3';

/** What is needed of the embedded API; tests hand in the real one. */
export interface TestApi {
  readonly kube: Kube;
  idle(): Promise<void>;
  close(): Promise<void>;
}

const CRD_FOLDER = new URL('../../manifests/crds/', import.meta.url).pathname;

/** A cluster with everything the operator reads, and the operator and the controllers on it. */
export class TestCluster {
  readonly api: TestApi;
  readonly clock: VirtualClock;
  readonly events: RecordedEvent[] = [];
  /** Calls under way, so that a test knows when nothing moves any more. */
  #inFlight = 0;
  #stop = new AbortController();
  readonly #running: Promise<void>[] = [];

  private constructor(api: TestApi, clock: VirtualClock) {
    this.api = api;
    this.clock = clock;
  }

  /** Makes the cluster; nothing runs yet. A bare one has definitions and nothing else. */
  static async create(
    startApi: (clock: VirtualClock) => Promise<TestApi>,
    { bare = false } = {},
  ): Promise<TestCluster> {
    const clock = new VirtualClock(NOW);
    const cluster = new TestCluster(await startApi(clock), clock);
    const { kube } = cluster;
    await installDefinitions(cluster.api);
    if (bare) return cluster;
    for (const name of [
      CONFIG_NAMESPACE,
      CONFIG_MANAGED_NAMESPACE,
      KUBE_APISERVER_OPERATOR_NAMESPACE,
      MACHINE_API_NAMESPACE,
      MCO_NAMESPACE,
    ]) {
      await kube.create(NAMESPACES, { metadata: { name } });
    }
    await cluster.#createSources();
    return cluster;
  }

  get kube(): Kube {
    return this.api.kube;
  }

  /** The API as a controller sees it: counted, and with something in between if a test wants that. */
  watched(before: (verb: string, args: readonly unknown[]) => void | Promise<void> = () => {}): Kube {
    return new Proxy(this.kube, {
      get: (target, name: keyof Kube) => {
        if (name === 'watch') return target.watch.bind(target);
        return async (...args: never[]) => {
          this.#inFlight++;
          try {
            await before(name, args);
            return await (target[name] as (...args: never[]) => Promise<unknown>).apply(target, args);
          } finally {
            this.#inFlight--;
          }
        };
      },
    });
  }

  startOperator(
    kube = this.watched(),
    options: Pick<MachineConfigOperatorDeps, 'disruptionPolicies' | 'handOver'> = {},
  ): void {
    const operator = machineConfigOperator({ ...this.#deps(kube), ...options, releaseVersion: RELEASE });
    this.#running.push(operator.run(this.#stop.signal));
  }

  /** Returns the way to stop this one alone. */
  startController(kube = this.watched()): () => Promise<void> {
    const own = new AbortController();
    const running = machineConfigController(this.#deps(kube)).run(AbortSignal.any([this.#stop.signal, own.signal]));
    this.#running.push(running);
    return async () => {
      own.abort();
      await running;
    };
  }

  #deps(kube: Kube) {
    const record = (event: RecordedEvent) => this.events.push(event);
    return { kube, clock: this.clock, events: eventsTo('test', record), log: silentLog, version: VERSION };
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    let isOver = false;
    const over = Promise.all(this.#running).finally(() => (isOver = true));
    // Whoever is in the middle of a pause may finish it.
    while (!isOver) {
      const next = this.clock.nextWait();
      if (next === undefined) await new Promise(resolve => setImmediate(resolve));
      else await this.clock.advanceTo(next);
    }
    await over;
    await this.api.close();
  }

  /** Waits until nothing can happen any more without time going on. */
  async quiet(): Promise<void> {
    for (let calm = 0; calm < 4; calm = this.#inFlight === 0 ? calm + 1 : 0) {
      await new Promise(resolve => setImmediate(resolve));
      await this.api.idle();
    }
  }

  /** Lets time pass, stopping at everything that is due. */
  async pass(milliseconds: number): Promise<void> {
    const end = this.clock.now().getTime() + milliseconds;
    for (;;) {
      await this.quiet();
      const next = this.clock.nextWait();
      if (next === undefined || next.getTime() > end) break;
      await this.clock.advanceTo(next);
    }
    await this.clock.advanceTo(new Date(end));
    await this.quiet();
  }

  /** Lets time pass until a condition holds; fails when it does not within the time. */
  async until(what: string, condition: () => boolean | Promise<boolean>, withinMs: number): Promise<void> {
    const end = this.clock.now().getTime() + withinMs;
    for (;;) {
      await this.quiet();
      if (await condition()) return;
      const next = this.clock.nextWait();
      if (next === undefined || next.getTime() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
      await this.clock.advanceTo(next);
    }
  }

  controllerConfig(): Promise<ControllerConfig> {
    return this.kube.get(CONTROLLER_CONFIGS, { name: CONTROLLER_CONFIG_NAME });
  }

  pool(name: string): Promise<MachineConfigPool> {
    return this.kube.get(MACHINE_CONFIG_POOLS, { name });
  }

  async rendered(pool: string): Promise<string[]> {
    const { items } = await this.kube.list(MACHINE_CONFIGS);
    return items.map(({ metadata }) => metadata?.name ?? '').filter(name => name.startsWith(`rendered-${pool}-`));
  }

  async clusterOperator() {
    const { status } = await this.kube.get(CLUSTER_OPERATORS, { name: 'machine-config' });
    return Object.fromEntries((status?.conditions ?? []).map(condition => [condition.type, condition]));
  }

  async setConfigMap(namespace: string, name: string, data: Record<string, string>): Promise<void> {
    const object: ConfigMap = { metadata: { namespace, name }, data };
    await this.kube.update(CONFIG_MAPS, object).catch(() => this.kube.create(CONFIG_MAPS, object));
  }

  async setSecret(namespace: string, name: string, type: string, data: Record<string, string>): Promise<void> {
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    const object: Secret = {
      metadata: { namespace, name },
      type,
      data: Object.fromEntries(encoded) as Record<string, string>,
    };
    await this.kube.update(SECRETS, object).catch(() => this.kube.create(SECRETS, object));
  }

  addNode(name: string, labels: Record<string, string>, config?: string): Promise<Node> {
    const annotations =
      config === undefined ? {} : { [CURRENT_CONFIG]: config, [DESIRED_CONFIG]: config, [DAEMON_STATE]: 'Done' };
    return this.kube.create(NODES, { metadata: { name, labels, annotations } });
  }

  async #createSources(): Promise<void> {
    const { kube } = this;
    await this.setConfigMap(KUBE_SYSTEM_NAMESPACE, 'root-ca', { 'ca.crt': await certificate('root-ca') });
    await this.setConfigMap(KUBE_SYSTEM_NAMESPACE, 'bootstrap', { status: 'complete' });
    await this.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', {
      'ca-bundle.crt': await certificate('client-ca'),
    });
    await this.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-server-ca', {
      'ca-bundle.crt': await certificate('server-ca'),
    });
    await this.setSecret(CONFIG_NAMESPACE, 'pull-secret', 'kubernetes.io/dockerconfigjson', {
      '.dockerconfigjson': '{"auths":{"quay.io":{"auth":"eA=="}}}',
    });
    const image = {
      releaseVersion: RELEASE,
      baseOSContainerImage: 'os@sha256:1',
      baseOSExtensionsContainerImage: 'ext@sha256:1',
    };
    await this.setConfigMap(MCO_NAMESPACE, 'machine-config-osimageurl', image);
    await this.setConfigMap(MCO_NAMESPACE, 'machine-config-operator-images', {
      'images.json': JSON.stringify({ releaseVersion: RELEASE, infraImage: 'pause' }),
    });
    const infra = await kube.create(INFRASTRUCTURES, { metadata: { name: 'cluster' }, spec: {} });
    const status = {
      platformStatus: { type: 'None' },
      apiServerInternalURI: 'https://api-int.c1.example.com:6443',
      controlPlaneTopology: 'HighlyAvailable',
    };
    await kube.updateStatus(INFRASTRUCTURES, { ...infra, status });
    await kube.create(NETWORKS, {
      metadata: { name: 'cluster' },
      spec: { serviceNetwork: ['172.30.0.0/16'], networkType: 'OVNKubernetes' },
    });
    await kube.create(DNSES, { metadata: { name: 'cluster' }, spec: { baseDomain: 'c1.example.com' } });
    await kube.create(IMAGES, { metadata: { name: 'cluster' }, spec: {} });
  }
}

/** Creates all CRDs of this project. */
export async function installDefinitions(api: TestApi): Promise<void> {
  for (const file of globSync('*.yaml', { cwd: CRD_FOLDER }).sort()) {
    await api.kube.create(
      CUSTOM_RESOURCE_DEFINITIONS,
      load(readFileSync(`${CRD_FOLDER}${file}`, 'utf8')) as KubeObject,
    );
  }
  await api.idle();
}

/** A self-signed certificate of that name, the same every time. */
export async function certificate(commonName: string): Promise<string> {
  const keys = seededKeys(commonName);
  const { chain } = await issueSigner({ keys, now: NOW, commonName, lifetimeMs: days(365), algorithm: 'P-256' });
  return encodeCertificates(chain);
}

/** A MachineConfig with one file. */
export function fileConfig(name: string, role: string, path: string, text: string): MachineConfig {
  return {
    metadata: { name, labels: { [ROLE_LABEL]: role } },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [{ path, mode: 0o644, contents: { source: `data:,${encodeURIComponent(text)}` } }] },
      },
    },
  };
}

/** A pool of its own for nodes with a label. */
export function customPool(name: string, maxUnavailable?: number | string): MachineConfigPool {
  return {
    metadata: { name },
    spec: {
      machineConfigSelector: { matchExpressions: [{ key: ROLE_LABEL, operator: 'In', values: ['worker', name] }] },
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: '' } },
      ...(maxUnavailable !== undefined && { maxUnavailable }),
    },
  };
}

/** Makes a cluster one of OpenShift's: it is a version of something. */
export async function makeOpenShift(kube: Kube, version: ClusterVersion = {}): Promise<void> {
  await kube.create(CUSTOM_RESOURCE_DEFINITIONS, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'clusterversions.config.openshift.io' },
    spec: {
      group: 'config.openshift.io',
      scope: 'Cluster',
      names: {
        kind: 'ClusterVersion',
        listKind: 'ClusterVersionList',
        plural: 'clusterversions',
        singular: 'clusterversion',
      },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  } as KubeObject);
  // A definition takes a moment to be served.
  for (let isMade = false; !isMade; ) {
    isMade = await kube.create(CLUSTER_VERSIONS, { ...version, metadata: { name: 'version' } }).then(
      () => true,
      () => new Promise<false>(resolve => setImmediate(resolve, false)),
    );
  }
}
