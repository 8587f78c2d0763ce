import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { Access } from '../../../src/kube/access.ts';
import { loadAccess } from '../../../src/kube/kubeconfig.ts';
import { DEPLOYMENTS, type KubeObject, NAMESPACES, NODES, resource } from '../../../src/kube/resource.ts';
import { ApiLoad, type LoadReport } from '../../cluster/real-load.ts';
import type { AdoptedCluster } from './adopted-cluster.ts';
import { REPORTS } from './load-places.ts';

const NAMESPACE = 'load';
const NAME = 'clients';
const IMAGE = 'registry.local/load:test';
const POD_PROGRAM = join(import.meta.dirname, 'load-pod.ts');
const ROLES = resource<KubeObject>('rbac.authorization.k8s.io/v1', 'Role', 'roles');
const ROLE_BINDINGS = resource<KubeObject>('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings');
const ASK_EVERY_MS = 500;
const ASK_PATIENCE_MS = 10_000;
/** An API that starts, or a kubelet: as often as standard clients repeat, later and later. */
const MOST_REPEATED = 10;
const LONGEST_PAUSE_MS = 5_000;
/** Words of Go's TLS, and what servers say to whom they do not know. */
const TRUST = /x509|tls:|Unauthorized/;

export interface ClusterLoadReport {
  /** The same person all the time, with admin.conf. */
  readonly admin: LoadReport;
  /** Every pod there has been. */
  readonly pods: readonly LoadReport[];
  /** Questions that kube-apiserver passed on to a kubelet. */
  readonly kubelets: { readonly asked: number; readonly repeated: number; readonly failures: readonly string[] };
}

/** Everybody who uses a cluster all the time: a person, pods on workers, kube-apiserver towards every kubelet. */
export class ClusterLoad {
  readonly #cluster: AdoptedCluster;
  readonly #admin: ApiLoad;
  readonly #stop = new AbortController();
  readonly #asking: Promise<void>;
  readonly #kubelets = { asked: 0, repeated: 0, failures: [] as string[] };

  private constructor(cluster: AdoptedCluster, access: Access) {
    this.#cluster = cluster;
    this.#admin = new ApiLoad(NAMESPACE, [{ name: 'admin', access }]);
    this.#asking = this.#askKubelets(access);
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
    return { admin: this.#admin.report(), pods, kubelets: this.#kubelets };
  }

  /**
   * Nobody was refused, as far as clients and servers can tell, and no request failed that standard clients would repeat. Where the only
   * kube-apiserver was away, requests failed; one that has just started knows no roles yet and no versions from before.
   */
  async refusedNobody({ wasAway = false } = {}): Promise<void> {
    const { admin, pods, kubelets } = this.report();
    const all = [admin, ...pods];
    const refusals = all.flatMap(({ refusals }) => refusals);
    const failures = [...all.flatMap(({ failures }) => failures), ...kubelets.failures];
    const lost = all.flatMap(({ lost }) => lost);
    const found = wasAway
      ? {
          failures: failures.filter(text => TRUST.test(text)),
          refusals: refusals.filter(text => !text.includes(' 403 ')),
          lost: [],
        }
      : { failures, refusals, lost };
    const logged = await this.#cluster.refusalsInLogs();
    assert.deepEqual({ ...found, logged }, { failures: [], refusals: [], lost: [], logged: [] });
  }

  /** In numbers, for whoever reads the test's output. */
  sum(): string {
    const { admin, pods, kubelets } = this.report();
    const of = (name: string, reports: readonly LoadReport[]) => {
      const sum = (key: 'lists' | 'updates' | 'retries' | 'events') =>
        reports.reduce((total, report) => total + report[key], 0);
      return `${name}: ${sum('lists')} lists, ${sum('updates')} updates, ${sum('events')} events, ${sum('retries')} repeated`;
    };
    const asked = `kubelets: asked ${kubelets.asked} times, ${kubelets.repeated} repeated`;
    return [of('admin.conf', [admin]), of(`${pods.length} pods`, pods), asked].join('; ');
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all([this.#admin.stop(), this.#asking]);
  }

  async #askKubelets(access: Access): Promise<void> {
    const { signal } = this.#stop;
    const working = new Map<string, number>();
    while (!signal.aborted) {
      const nodes = await this.#cluster.kube.list(NODES, {}).catch(() => undefined);
      for (const { metadata } of nodes?.items ?? []) {
        const name = metadata?.name ?? '';
        const answer = await ask(access, `/api/v1/nodes/${name}/proxy/healthz`, signal);
        this.#kubelets.asked++;
        if (answer === undefined) {
          working.set(name, 0);
          continue;
        }
        if (signal.aborted) return;
        this.#kubelets.repeated++;
        const times = (working.get(name) ?? 0) + 1;
        working.set(name, times);
        if (TRUST.test(answer) || times === MOST_REPEATED)
          this.#kubelets.failures.push(`${new Date().toISOString()} kubelet of ${name}: ${answer}`);
        await pause(Math.min(100 * 2 ** times, LONGEST_PAUSE_MS));
      }
      await pause(ASK_EVERY_MS);
    }
  }
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

/** What is wrong with the answer; undefined: nothing. */
async function ask(access: Access, path: string, signal: AbortSignal): Promise<string | undefined> {
  const { server, tls, headers } = await access.connection();
  return new Promise(resolve => {
    const options = { ca: tls.ca, cert: tls.certificate, key: tls.key, headers, agent: false, signal };
    const question = request(new URL(path, server), options, answer => {
      let text = '';
      answer.setEncoding('utf8').on('data', part => {
        text += part;
      });
      answer.once('close', () =>
        resolve(answer.statusCode === 200 ? undefined : `${answer.statusCode} ${text.slice(0, 300)}`),
      );
    });
    question.setTimeout(ASK_PATIENCE_MS, () => question.destroy(new Error('no answer')));
    question.once('error', error => resolve(String(error)));
    question.end();
  });
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}
