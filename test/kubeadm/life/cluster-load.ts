import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Access } from '../../../src/kube/access.ts';
import { loadAccess } from '../../../src/kube/kubeconfig.ts';
import { DEPLOYMENTS, type KubeObject, NAMESPACES, NODES, resource } from '../../../src/kube/resource.ts';
import { CONTROL_PLANE_LABEL } from '../../../src/kubeadm/names.ts';
import { ApiLoad, type LoadReport } from '../../cluster/real-load.ts';
import type { AdoptedCluster } from './adopted-cluster.ts';
import { type AskedReport, Asking, isAboutTrust, kubeletBehind, memberOf, renewalsIn } from './asking.ts';
import { REPORTS } from './load-places.ts';

const NAMESPACE = 'load';
const NAME = 'clients';
const IMAGE = 'registry.local/load:test';
const POD_PROGRAM = join(import.meta.dirname, 'load-pod.ts');
const ROLES = resource<KubeObject>('rbac.authorization.k8s.io/v1', 'Role', 'roles');
const ROLE_BINDINGS = resource<KubeObject>('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings');

export interface ClusterLoadReport {
  /** The same person all the time, with admin.conf. */
  readonly admin: LoadReport;
  /** Every pod there has been. */
  readonly pods: readonly LoadReport[];
  /** Questions that kube-apiserver passed on to a kubelet. */
  readonly kubelets: AskedReport;
  /** Questions to every member of etcd, with what is in `pki/etcd` of its node. */
  readonly etcd: AskedReport;
  /** Leases that kubelets have renewed, with their own credentials. */
  readonly leasesRenewed: number;
}

/** Everybody who uses a cluster all the time: a person, pods on workers, kube-apiserver towards every kubelet, kubelets, clients of etcd. */
export class ClusterLoad {
  readonly #cluster: AdoptedCluster;
  readonly #admin: ApiLoad;
  readonly #stop = new AbortController();
  readonly #asking: Promise<unknown>;
  readonly #kubelets = new Asking('kubelet');
  readonly #etcd = new Asking('etcd');
  #leasesRenewed = 0;

  private constructor(cluster: AdoptedCluster, access: Access) {
    this.#cluster = cluster;
    this.#admin = new ApiLoad(NAMESPACE, [{ name: 'admin', access }]);
    const { signal } = this.#stop;
    const nodes = () => joined(cluster, {});
    const members = () => joined(cluster, { labelSelector: CONTROL_PLANE_LABEL });
    const renewed = () => {
      this.#leasesRenewed++;
    };
    this.#asking = Promise.all([
      this.#kubelets.run(nodes, kubeletBehind(access), signal),
      this.#etcd.run(members, node => cluster.unlessByHand(() => memberOf(node)), signal),
      new Asking('lease').run(nodes, renewalsIn(cluster, renewed), signal),
    ]);
  }

  static async start(cluster: AdoptedCluster): Promise<ClusterLoad> {
    const { kube, rig } = cluster;
    await kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
    await addImage(cluster);
    const metadata = { name: NAME, namespace: NAMESPACE };
    const verbs = ['get', 'list', 'watch', 'create', 'update'];
    const subjects = [{ kind: 'ServiceAccount', name: 'default', namespace: NAMESPACE }];
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: NAME };
    await kube.create(ROLES, {
      metadata,
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs }],
    } as KubeObject);
    await kube.create(ROLE_BINDINGS, { metadata, roleRef, subjects } as KubeObject);
    const labels = { app: NAME };
    const volume = { name: 'reports', hostPath: { path: REPORTS, type: 'DirectoryOrCreate' } };
    const volumeMounts = [{ name: volume.name, mountPath: REPORTS }];
    const container = { name: 'client', image: IMAGE, imagePullPolicy: 'Never', volumeMounts };
    await kube.create(DEPLOYMENTS, {
      metadata,
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [container], volumes: [volume] } },
      },
    });
    await cluster.eventually('pods that use the API', async () => {
      const { status } = await kube.get(DEPLOYMENTS, metadata);
      return status?.availableReplicas === 2;
    });
    return new ClusterLoad(
      cluster,
      await loadAccess({ path: join(rig.nodes[0]?.root ?? '', 'etc/kubernetes/admin.conf') }),
    );
  }

  report(): ClusterLoadReport {
    const pods = this.#cluster.rig.nodes.flatMap(({ root }) => {
      const folder = join(root, REPORTS);
      const files = existsSync(folder) ? readdirSync(folder).filter(name => name.endsWith('.json')) : [];
      return files.map(name => JSON.parse(readFileSync(join(folder, name), 'utf8')) as LoadReport);
    });
    return {
      admin: this.#admin.report(),
      pods,
      kubelets: this.#kubelets.report(),
      etcd: this.#etcd.report(),
      leasesRenewed: this.#leasesRenewed,
    };
  }

  /**
   * Nobody was refused, as far as clients and servers can tell, and no request failed that standard clients would repeat. Where the only
   * kube-apiserver was away, requests failed; one that has just started knows no roles yet and no versions from before.
   */
  async refusedNobody({ wasAway = false } = {}): Promise<void> {
    const { admin, pods, kubelets, etcd } = this.report();
    const all = [admin, ...pods];
    const refusals = all.flatMap(({ refusals }) => refusals);
    const failures = [...all, kubelets, etcd].flatMap(({ failures }) => failures);
    const lost = all.flatMap(({ lost }) => lost);
    const found = wasAway
      ? {
          failures: failures.filter(isAboutTrust),
          refusals: refusals.filter(text => !text.includes(' 403 ')),
          lost: [],
        }
      : { failures, refusals, lost };
    const logged = await this.#cluster.refusalsInLogs();
    assert.deepEqual({ ...found, logged }, { failures: [], refusals: [], lost: [], logged: [] });
  }

  /** In numbers, for whoever reads the test's output. */
  async sum(): Promise<string> {
    const { admin, pods, kubelets, etcd, leasesRenewed } = this.report();
    const all = [admin, ...pods];
    const of = (name: string, reports: readonly LoadReport[]) => {
      const sum = (key: 'lists' | 'updates' | 'retries' | 'events') =>
        reports.reduce((total, report) => total + report[key], 0);
      return `${name}: ${sum('lists')} lists, ${sum('updates')} updates, ${sum('events')} events, ${sum('retries')} repeated`;
    };
    const count = (key: 'failures' | 'refusals' | 'lost') =>
      all.reduce((total, report) => total + report[key].length, 0);
    // Every question to a kubelet or a member is a connection of its own.
    const handshakes = all.reduce((total, { clients }) => total + clients, kubelets.asked + etcd.asked);
    const untrusted = kubelets.failures.length + etcd.failures.length + (await this.#cluster.refusalsInLogs()).length;
    const asked = (name: string, { asked: times, repeated, longestMs }: AskedReport) =>
      `${name}: asked ${times} times, ${repeated} repeated, for ${(longestMs / 1000).toFixed(1)} s at most`;
    return [
      of('admin.conf', [admin]),
      of(`${pods.length} pods`, pods),
      asked('kubelets through kube-apiserver', kubelets),
      asked('members of etcd', etcd),
      `kubelets: ${leasesRenewed} leases renewed`,
      `failed with all repetitions: ${count('failures')}, refused: ${count('refusals')}, watches that lost something: ${count('lost')}`,
      `at least ${handshakes} handshakes, of which one side refused: ${untrusted}`,
    ].join('; ');
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#admin.stop(), this.#asking]);
  }
}

/** Those that are nodes by now. */
async function joined({ kube, rig }: AdoptedCluster, selection: { readonly labelSelector?: string }) {
  const found = await kube.list(NODES, selection).catch(() => undefined);
  const names = new Set(found?.items.map(({ metadata }) => metadata?.name));
  return rig.nodes.filter(({ name }) => names.has(name));
}

async function addImage({ rig }: AdoptedCluster): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-load-'));
  try {
    const outfile = join(dir, 'load-pod.mjs');
    await build({
      entryPoints: [POD_PROGRAM],
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile,
      logLevel: 'warning',
      banner: { js: REQUIRE },
    });
    await rig.addImage(IMAGE, {
      programs: [process.execPath],
      folders: { '/opt/load': dir },
      entrypoint: ['/bin/node', '/opt/load/load-pod.mjs'],
    });
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Parts of some packages ask for this. */
const REQUIRE =
  'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);';
