import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { loadSecret, TLS_SECRET, withCertificate } from '../certrotation/secret.ts';
import type { Condition } from '../controller/condition.ts';
import { type Log, silentLog } from '../controller/log.ts';
import type { Reconcile, ReconcileContext, Result } from '../controller/reconcile.ts';
import { HandOverReport } from '../hand-over/report.ts';
import { VirtualClock } from '../kube/clock.ts';
import { days } from '../kube/duration.ts';
import { type RecordedEvent, recordingEvents } from '../kube/events.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  type KubeObject,
  NAMESPACES,
  NODES,
  type Resource,
  SECRETS,
} from '../kube/resource.ts';
import { ownCertificate } from '../pki/authority.ts';
import type { Certificate } from '../pki/certificate.ts';
import { verifyChain } from '../pki/chain.ts';
import { issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { readCertificates } from '../pki/pem.ts';
import type { StoredNodeStatus } from '../staticpod/node-status.ts';
import { StaticPodOperator, type StaticPodOperatorStatus } from '../staticpod/operator.ts';
import { INFRASTRUCTURES } from '../staticpod/topology.ts';
import { chainsIn } from './aggregate.ts';
import { CERT_SIGNER_CONDITION, certSignerReconcile } from './cert-signer/controller.ts';
import type { QuorumCheck } from './cert-signer/options.ts';
import { FAMILY_TABLE } from './cert-table.ts';
import { type ExpirationMetrics, noExpirationMetrics } from './metrics.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE, KUBE_APISERVER_NAMESPACE, OPERATOR_NAMESPACE } from './names.ts';
import { type Profile, profileLater } from './profile.ts';
import { RULE_FOR_ROTATION } from './quorum/decide.ts';
import { QuorumReader } from './quorum/reader.ts';
import { FakeMembers } from './quorum/testing.ts';
import { CLUSTER, ETCDS, KUBE_API_SERVERS, NETWORKS } from './resources.ts';

/** What the tests of this room share: one moment, a cluster whose rollouts are made by hand, members that say what they are told. */
export const NOW = new Date('2026-01-01T00:00:00Z');

export interface TestEtcdOptions {
  readonly kube: Kube;
  readonly clock?: VirtualClock | undefined;
  readonly profile?: Profile | undefined;
  readonly nodes?: Readonly<Record<string, readonly string[]>> | undefined;
  readonly metrics?: ExpirationMetrics | undefined;
  readonly quorum?: QuorumCheck | undefined;
  readonly log?: Log | undefined;
}

export const THREE_NODES = { 'master-0': ['10.0.0.1'], 'master-1': ['10.0.0.2'], 'master-2': ['10.0.0.3'] } as const;

export class TestEtcd {
  readonly kube: Kube;
  readonly clock: VirtualClock;
  readonly profile: Profile;
  readonly events: RecordedEvent[];
  readonly context: ReconcileContext;
  readonly operator: StaticPodOperator;
  readonly members = new FakeMembers();
  readonly handOvers: HandOverReport;
  readonly reconcile: Reconcile;
  readonly #metrics: ExpirationMetrics;
  readonly #quorum: QuorumCheck;

  private constructor({
    kube,
    clock = new VirtualClock(NOW),
    profile = profileLater(),
    metrics,
    quorum,
    log = silentLog,
  }: TestEtcdOptions) {
    const events = recordingEvents();
    const { signal } = new AbortController();
    this.kube = kube;
    this.clock = clock;
    this.profile = profile;
    this.events = events.events;
    const signers = Object.values(FAMILY_TABLE).map(({ signer: name }) => name);
    this.handOvers = new HandOverReport(signers, { clock, events });
    this.context = { signal, clock, events, log, enqueue: () => {} };
    this.operator = new StaticPodOperator({ kube, resource: ETCDS, clock });
    this.#metrics = metrics ?? noExpirationMetrics;
    const reader = new QuorumReader({ kube, members: this.members });
    this.#quorum = quorum ?? (request => reader.check(RULE_FOR_ROTATION, request));
    this.reconcile = this.certSigner(profile);
  }

  /** The controller of this or another release over the same cluster. */
  certSigner(profile: Profile): Reconcile {
    const { kube, clock, operator, context } = this;
    return certSignerReconcile({
      kube,
      clock,
      keys: systemKeys,
      keyAlgorithm: 'P-256',
      events: context.events,
      profile,
      operator,
      metrics: this.#metrics,
      handOvers: this.handOvers,
      quorum: this.#quorum,
      log: context.log,
    });
  }

  static async create(options: TestEtcdOptions): Promise<TestEtcd> {
    const test = new TestEtcd(options);
    const { kube } = test;
    for (const name of [
      ETCD_NAMESPACE,
      OPERATOR_NAMESPACE,
      CONFIG_NAMESPACE,
      KUBE_APISERVER_NAMESPACE,
      'kube-system',
    ]) {
      const isThere = (await getIfPresent(kube, NAMESPACES, { name })) !== undefined;
      if (!isThere) await kube.create(NAMESPACES, { metadata: { name } });
    }
    await defineResources(kube);
    await kube.create(ETCDS, { metadata: CLUSTER, spec: { managementState: 'Managed' } });
    for (const [name, addresses] of Object.entries(options.nodes ?? THREE_NODES)) await test.addNode(name, addresses);
    return test;
  }

  /** One pass of the cert signer; pauses inside it end at once. */
  async sync(reconcile = this.reconcile): Promise<Result> {
    const pass = reconcile('key', this.context);
    let isOver = false;
    const over = () => (isOver = true);
    pass.then(over, over);
    while (!isOver) {
      const next = this.clock.nextWait();
      if (next === undefined || next.getTime() - this.clock.now().getTime() > 1000)
        await new Promise(resolve => setImmediate(resolve));
      else await this.clock.advanceTo(next);
    }
    return (await pass) ?? {};
  }

  async addNode(name: string, addresses: readonly string[]): Promise<void> {
    const labels = { 'node-role.kubernetes.io/master': '' };
    const node = await this.kube.create(NODES, { metadata: { name, labels } });
    const status = { addresses: addresses.map(address => ({ type: 'InternalIP', address })) };
    await this.kube.updateStatus(NODES, { ...node, status });
    this.members.add(name, addresses[0] ?? '');
  }

  async removeNode(name: string): Promise<void> {
    await this.kube.delete(NODES, { name });
    this.members.delete(name);
    const { nodeStatuses = [] } = await this.status();
    await this.setStatus({ nodeStatuses: nodeStatuses.filter(({ nodeName }) => nodeName !== name) });
  }

  async status(): Promise<StaticPodOperatorStatus> {
    return (await this.kube.get(ETCDS, CLUSTER)).status ?? {};
  }

  async setStatus(change: StaticPodOperatorStatus): Promise<void> {
    await this.operator.update(status => ({ ...status, ...change }));
  }

  /** What the revision controller does: copies everything under the next number. Nobody runs it yet. */
  async cutRevision(profile = this.profile): Promise<number> {
    const { latestAvailableRevision = 0, nodeStatuses = [] } = await this.status();
    const revision = latestAvailableRevision + 1;
    if (!profile.aggregatesBundles) await this.copyBundles();
    for (const { name } of profile.revisioned.configMaps) await this.#copy(CONFIG_MAPS, name, `${name}-${revision}`);
    for (const { name } of profile.revisioned.secrets) await this.#copy(SECRETS, name, `${name}-${revision}`);
    const known =
      nodeStatuses.length > 0
        ? nodeStatuses
        : (await this.nodeNames()).map(nodeName => ({ nodeName, currentRevision: 0 }));
    await this.setStatus({ latestAvailableRevision: revision, nodeStatuses: known });
    return revision;
  }

  /** What the installer controller does: brings these nodes, or all, to the latest revision. */
  async install(...nodes: readonly string[]): Promise<void> {
    const { latestAvailableRevision = 0, nodeStatuses = [] } = await this.status();
    const chosen = (entry: StoredNodeStatus) => nodes.length === 0 || nodes.includes(entry.nodeName);
    await this.setStatus({
      nodeStatuses: nodeStatuses.map(entry =>
        chosen(entry) ? { ...entry, currentRevision: latestAvailableRevision } : entry,
      ),
    });
  }

  async rollOut(profile = this.profile): Promise<number> {
    const revision = await this.cutRevision(profile);
    await this.install();
    return revision;
  }

  /** From nothing to all nodes at revision 1 with everything in place. */
  async settle(): Promise<void> {
    await this.sync();
    await this.rollOut();
    await this.sync();
  }

  /** What resource sync does with the bundles in the layout of 4.16. */
  async copyBundles(): Promise<void> {
    const copies = {
      'etcd-serving-ca': 'etcd-ca-bundle',
      'etcd-peer-client-ca': 'etcd-ca-bundle',
      'etcd-metrics-proxy-serving-ca': 'etcd-metrics-ca-bundle',
      'etcd-metrics-proxy-client-ca': 'etcd-metrics-ca-bundle',
    };
    for (const [name, source] of Object.entries(copies)) {
      const { data = {} } = await this.configMap(source);
      const existing = await getIfPresent(this.kube, CONFIG_MAPS, { namespace: ETCD_NAMESPACE, name });
      if (existing === undefined)
        await this.kube.create(CONFIG_MAPS, { metadata: { namespace: ETCD_NAMESPACE, name }, data });
      else await this.kube.update(CONFIG_MAPS, { ...existing, data });
    }
  }

  /** A kube-apiserver that runs this revision with the etcd CAs of now. */
  async rollOutKubeApiServer(revision: number): Promise<void> {
    const bundle = await this.kube.get(CONFIG_MAPS, { namespace: ETCD_NAMESPACE, name: 'etcd-ca-bundle' });
    const name = `etcd-serving-ca-${revision}`;
    await this.kube.create(CONFIG_MAPS, {
      metadata: { namespace: KUBE_APISERVER_NAMESPACE, name },
      data: bundle.data ?? {},
    });
    const status = {
      latestAvailableRevision: revision,
      nodeStatuses: (await this.nodeNames()).map(nodeName => ({ nodeName, currentRevision: revision })),
    };
    const existing =
      (await getIfPresent(this.kube, KUBE_API_SERVERS, CLUSTER)) ??
      (await this.kube.create(KUBE_API_SERVERS, { metadata: CLUSTER, spec: { managementState: 'Managed' } }));
    await this.kube.updateStatus(KUBE_API_SERVERS, { ...existing, status });
  }

  async nodeNames(): Promise<string[]> {
    return (await this.kube.list(NODES)).items.map(({ metadata }) => metadata?.name ?? '').sort();
  }

  secret(name: string, namespace: string = ETCD_NAMESPACE): Promise<Secret> {
    return this.kube.get(SECRETS, { namespace, name });
  }

  configMap(name: string, namespace: string = ETCD_NAMESPACE): Promise<ConfigMap> {
    return this.kube.get(CONFIG_MAPS, { namespace, name });
  }

  async certificate(name: string, namespace?: string): Promise<Certificate> {
    return ownCertificate(loadSecret(await this.secret(name, namespace)));
  }

  async bundle(name = 'etcd-ca-bundle', key = BUNDLE_KEY): Promise<Certificate[]> {
    return readCertificates((await this.configMap(name)).data?.[key] ?? '').certificates;
  }

  /** Takes the annotations of a Secret away that say how long it lives: the way to force a rotation. */
  async forget(name: string, namespace: string = ETCD_NAMESPACE): Promise<void> {
    const secret = await this.secret(name, namespace);
    const annotations = Object.fromEntries(
      Object.entries(secret.metadata?.annotations ?? {}).filter(
        ([key]) => !key.startsWith('auth.openshift.io/certificate-not'),
      ),
    );
    await this.kube.update(SECRETS, { ...secret, metadata: { ...secret.metadata, annotations } });
  }

  /** Everything in these namespaces by kind, place and content, to compare before and after. */
  async snapshot(...namespaces: readonly string[]): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const namespace of namespaces.length > 0 ? namespaces : [ETCD_NAMESPACE, CONFIG_NAMESPACE]) {
      for (const kind of [SECRETS, CONFIG_MAPS] as const) {
        for (const object of (await this.kube.list<Secret | ConfigMap>(kind, { namespace })).items) {
          found.set(`${kind.kind} ${namespace}/${object.metadata?.name}`, JSON.stringify(object.data ?? {}));
        }
      }
    }
    return found;
  }

  /** Every object of ours with its version: what was written since shows in it. */
  async versions(): Promise<Set<string>> {
    const found = new Set<string>();
    for (const namespace of [ETCD_NAMESPACE, CONFIG_NAMESPACE]) {
      for (const kind of [SECRETS, CONFIG_MAPS] as const) {
        for (const { metadata } of (await this.kube.list<Secret | ConfigMap>(kind, { namespace })).items) {
          found.add(`${kind.kind} ${namespace}/${metadata?.name} ${metadata?.resourceVersion}`);
        }
      }
    }
    return found;
  }

  async condition(type: string = CERT_SIGNER_CONDITION): Promise<Condition | undefined> {
    return (await this.status()).conditions?.find(condition => condition.type === type);
  }

  /** Leaves that are out there and that some node's revision would refuse: the first of section 15's invariants forbids them. */
  async refusals(): Promise<string[]> {
    const published = await this.secret('etcd-all-certs');
    const { nodeStatuses = [] } = await this.status();
    const refusals: string[] = [];
    for (const { nodeName, currentRevision } of nodeStatuses) {
      if (!currentRevision) continue;
      const roots = await this.bundle(`etcd-all-bundles-${currentRevision}`, 'server-ca-bundle.crt');
      const names = nodeStatuses.flatMap(node => [`etcd-peer-${node.nodeName}`, `etcd-serving-${node.nodeName}`]);
      for (const [leaf] of chainsIn(published, names)) {
        if (leaf === undefined || verifyChain({ leaf, roots, now: this.clock.now() }).ok) continue;
        refusals.push(`${nodeName} at revision ${currentRevision} refuses ${leaf.issuer.commonName}`);
      }
    }
    return refusals;
  }

  async #copy<T extends Secret | ConfigMap>(kind: Resource<T>, name: string, copy: string): Promise<void> {
    const source = await getIfPresent(this.kube, kind, { namespace: ETCD_NAMESPACE, name });
    if (source === undefined) return;
    const { apiVersion: _version, kind: _kind, metadata: _metadata, ...content } = source as T & KubeObject;
    await this.kube.create(kind, { ...(content as unknown as T), metadata: { namespace: ETCD_NAMESPACE, name: copy } });
  }
}

/** Where the operator reads and writes. */
export const OPERATOR_NAMESPACES = [
  ETCD_NAMESPACE,
  OPERATOR_NAMESPACE,
  CONFIG_NAMESPACE,
  KUBE_APISERVER_NAMESPACE,
  'kube-system',
];

/** Teaches an API the kinds the operator knows. */
export async function defineResources(kube: Kube): Promise<void> {
  for (const kind of [ETCDS, KUBE_API_SERVERS, INFRASTRUCTURES, NETWORKS]) await defineResource(kube, kind);
}

const ANYTHING = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as object;

export async function defineResource(kube: Kube, { group, version, kind, plural }: Resource): Promise<void> {
  await kube.create(CUSTOM_RESOURCE_DEFINITIONS, {
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope: 'Cluster',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: ANYTHING },
        },
      ],
    },
  });
}

/** A CA as somebody else made it. */
export async function foreignSigner(
  name: string,
  { namespace = CONFIG_NAMESPACE, lifetimeDays = 1825, now = NOW } = {},
): Promise<Secret> {
  const signer = await issueSigner({
    commonName: `${namespace}_${name}@${Math.floor(now.getTime() / 1000)}`,
    lifetimeMs: days(lifetimeDays),
    now,
    keys: systemKeys,
    algorithm: 'P-256',
  });
  return withCertificate({ metadata: { namespace, name }, type: TLS_SECRET }, signer, 'signer', days(1533));
}
