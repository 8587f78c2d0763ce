import type { TestContext } from 'node:test';
import { startEngine } from '../../api/api.ts';
import type { Clock } from '../../kube/clock.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, PODS } from '../../kube/resource.ts';
import { POLICIES, POLICY_BINDINGS } from '../../kubeadm/adopt/policies.ts';
import { KUBEADM_CHAINS } from '../../kubeadm/chains.ts';
import { CLUSTER_RECORD, type ClusterStatus, withStatus } from '../../kubeadm/cluster-record.ts';
import { CONTROL_PLANE_LABEL, KUBEADM_CONFIG } from '../../kubeadm/names.ts';
import { encodeReport, NODE_REPORT, type NodeReport } from '../../kubeadm/report.ts';
import { definitionOf } from '../../local/kubeadm/objects.ts';

const [CA, PROXY, ETCD, KEY] = ['a', 'b', 'c', 'd'].map(letter => letter.repeat(64)) as [
  string,
  string,
  string,
  string,
];
const LEAF = { digest: KEY, notBefore: '2026-01-01T00:00:00Z', notAfter: '2027-01-01T00:00:00Z' };

/** What the agent of a control-plane node says where all is well. */
export const GOOD_REPORT: NodeReport = {
  role: 'control-plane',
  etcd: 'stacked',
  signers: {
    ca: { cas: [CA], key: 'fits' },
    'front-proxy-ca': { cas: [PROXY], key: 'fits' },
    'etcd-ca': { cas: [ETCD], key: 'fits' },
  },
  signing: { ca: CA, isSeparate: false },
  serviceAccount: { signs: KEY, accepts: [KEY] },
  leaves: Object.fromEntries(KUBEADM_CHAINS.filter(chain => !chain.isOptional).map(({ name }) => [name, LEAF])),
  processes: {},
};
export const GOOD_STATUS: ClusterStatus = {
  adopted: true,
  differences: [],
  message: 'all is well',
  waitingFor: [],
  families: {},
};

/** A cluster that kubeadm made, with a control plane of two nodes and a worker; what agents and operator do is what the test says. */
export class KubeadmWorld {
  readonly kube: Kube;

  private constructor(kube: Kube) {
    this.kube = kube;
  }

  static async create(t: TestContext, clock?: Clock): Promise<KubeadmWorld> {
    const engine = await startEngine({ clock });
    t.after(() => engine.close());
    return KubeadmWorld.on(engine.kube);
  }

  static async on(kube: Kube): Promise<KubeadmWorld> {
    await KubeadmWorld.kindsOn(kube);
    for (const name of ['kube-system', 'kube-public', 'kube-node-lease', 'default'])
      await kube.create(NAMESPACES, { metadata: { name } }).catch(() => undefined);
    await kube.create(CONFIG_MAPS, {
      metadata: { ...KUBEADM_CONFIG },
      data: {
        ClusterConfiguration:
          'kind: ClusterConfiguration\nkubernetesVersion: v1.36.3\ncertificatesDir: /etc/kubernetes/pki\n',
      },
    });
    const world = new KubeadmWorld(kube);
    for (const name of ['a', 'b']) await world.node(name, { [CONTROL_PLANE_LABEL]: '' });
    await world.node('w', {});
    return world;
  }

  /** The embedded API does not know these kinds by itself. */
  static async kindsOn(kube: Kube): Promise<void> {
    for (const kind of [POLICIES, POLICY_BINDINGS]) await kube.create(CUSTOM_RESOURCE_DEFINITIONS, definitionOf(kind));
  }

  async node(name: string, labels: Record<string, string>): Promise<void> {
    await this.kube.create(NODES, { metadata: { name, labels } });
    const conditions = [{ type: 'Ready', status: 'True' }];
    await this.kube.patch(
      NODES,
      { name },
      { type: 'merge', body: { status: { conditions } } },
      { subresource: 'status' },
    );
  }

  /** The agent of a node says what it sees; undefined: it is silent. */
  async reports(name: string, report: NodeReport | undefined): Promise<void> {
    const annotations = { [NODE_REPORT]: report === undefined ? null : encodeReport(report) };
    await this.kube.patch(NODES, { name }, { type: 'merge', body: { metadata: { annotations } } });
  }

  /** The operator says how it stands. */
  async says(status: ClusterStatus): Promise<void> {
    const record = await this.kube.get(CONFIG_MAPS, CLUSTER_RECORD);
    await this.kube.update(CONFIG_MAPS, withStatus(record, status));
  }

  /** A mirror pod of kube-apiserver. */
  async apiServer(node: string, ...flags: string[]): Promise<void> {
    await this.kube.create(PODS, {
      metadata: {
        namespace: 'kube-system',
        name: `kube-apiserver-${node}`,
        labels: { component: 'kube-apiserver', tier: 'control-plane' },
      },
      spec: {
        nodeName: node,
        containers: [{ name: 'kube-apiserver', image: 'x', command: ['kube-apiserver', ...flags] }],
      },
    });
  }
}
