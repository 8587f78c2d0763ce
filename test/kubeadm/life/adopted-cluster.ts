import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { annotationsOf } from '../../../src/certrotation/secret.ts';
import { HttpKube } from '../../../src/kube/client.ts';
import { loadAccess } from '../../../src/kube/kubeconfig.ts';
import { CONFIG_MAPS, NODES, PODS, SECRETS } from '../../../src/kube/resource.ts';
import { CLUSTER_RECORD, type ClusterStatus, statusOf } from '../../../src/kubeadm/cluster-record.ts';
import { PKI_NAMESPACE } from '../../../src/kubeadm/names.ts';
import { JOINS_END } from '../../../src/kubeadm/operator/names.ts';
import { type LeafSight, NODE_REPORT, reportOf } from '../../../src/kubeadm/report.ts';
import type { Certificate } from '../../../src/pki/certificate.ts';
import { readCertificates } from '../../../src/pki/pem.ts';
import type { ExpirationRow } from '../../cluster/kubeadm-program.ts';
import { eventuallyDespiteErrors as eventually } from '../../tools/eventually.ts';
import { type Rig, type RigOptions, startRig } from '../rig/rig.ts';
import type { RigNode } from '../rig/rig-node.ts';
import { addRotundaImage } from '../rig/rotunda-image.ts';

const MAIN = join(import.meta.dirname, '../../../src/cli/main.ts');
export const ROTUNDA_IMAGE = 'registry.local/rotunda:test';
/**
 * How Go's TLS, etcd and kube-apiserver say it. Not of tokens: a kube-apiserver that starts knows none of those that nodes join with, and
 * pods tell by themselves when theirs are refused.
 */
const REFUSAL = 'x509: |tls: bad certificate|tls: unknown certificate|tls: expired certificate';
/** Commands whose output is worth reading beside the test's. */
const TOLD: ReadonlySet<string | undefined> = new Set(['rotate', 'release']);
/** What follows a hand-over has as long as a whole file of tests. */
const COMMAND_LIMIT_MS = 25 * 60_000;

/** A cluster that kubeadm made, on the rig, with Rotunda's image, and what a person does with it and sees of it. */
export class AdoptedCluster {
  readonly rig: Rig;
  /** With the admin.conf of the first node, as it is at every moment. */
  readonly kube: HttpKube;

  /** Odd while somebody renews by hand. */
  #hands = 0;

  private constructor(rig: Rig, kube: HttpKube) {
    this.rig = rig;
    this.kube = kube;
  }

  /** It is not adopted yet. */
  static async start(options: RigOptions): Promise<AdoptedCluster> {
    const rig = await startRig({ ...options, tell });
    await addRotundaImage(rig, ROTUNDA_IMAGE);
    return new AdoptedCluster(rig, new HttpKube(await loadAccess({ path: adminOf(rig) })));
  }

  async close(): Promise<void> {
    await this.kube.close();
    await this.rig.close();
  }

  get first(): RigNode {
    return this.controlPlane[0] as RigNode;
  }

  get controlPlane(): RigNode[] {
    return this.rig.nodes.filter(({ role }) => role === 'control-plane');
  }

  /** The file on the first node, which is renewed and gets a new CA; copies of it do not. */
  get admin(): string {
    return adminOf(this.rig);
  }

  /** Runs a command as a person does on the first node; fails with what it said. */
  async rotunda(...args: string[]): Promise<string> {
    const began = performance.now();
    const child = spawn(process.execPath, [MAIN, ...args, '--kubeconfig', this.admin], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: COMMAND_LIMIT_MS,
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    tell(`rotunda ${args.join(' ')}: ${code} after ${((performance.now() - began) / 1000).toFixed(1)} s`);
    if (TOLD.has(args[0])) tell(text.trimEnd());
    if (code === 0) return text;
    throw new Error(`rotunda ${args.join(' ')} ended with ${code}: ${text}\n${await this.story()}`);
  }

  /** Until something is so; who waits in vain gets the story. */
  eventually(what: string, isSo: () => unknown): Promise<void> {
    return eventually(what, isSo, () => this.story()).then(() => {});
  }

  async status(): Promise<ClusterStatus> {
    const status = statusOf(await this.kube.get(CONFIG_MAPS, CLUSTER_RECORD));
    if (status === undefined) throw new Error('the operator says nothing');
    return status;
  }

  /** Nobody is asked for anything, nothing is behind, and every node tells of itself. */
  isQuiet(): Promise<void> {
    return this.eventually('a cluster at rest', async () => {
      const { round, waitingFor, adopted } = await this.status();
      const { items } = await this.kube.list(NODES, {});
      const isAtRest = items.every(node => {
        const report = reportOf(node);
        return report !== undefined && Object.values(report.processes).every(({ behind }) => behind.length === 0);
      });
      return adopted && round === undefined && waitingFor.length === 0 && isAtRest;
    });
  }

  /** The CAs of a file of the first node. */
  async casIn(file: string): Promise<readonly Certificate[]> {
    return readCertificates(await this.first.read(join('/etc/kubernetes/pki', file))).certificates;
  }

  /** Content, mode and owner of everything that kubeadm or a kubelet has written. */
  files(): Promise<string> {
    const list =
      'find /etc/kubernetes /var/lib/kubelet/pki -type f -printf "%p %m %u %g " -exec sha256sum {} ";" | sort';
    return onEach(this.rig.nodes, list);
  }

  certificatesOnDisk(): Promise<string> {
    return onEach(this.controlPlane, 'cd /etc/kubernetes && sha256sum pki/*.crt pki/etcd/*.crt *.conf');
  }

  /** Every leaf of every node, by both names. */
  async leaves(): Promise<Map<string, LeafSight>> {
    const { items } = await this.kube.list(NODES, {});
    return new Map(
      items.flatMap(node =>
        Object.entries(reportOf(node)?.leaves ?? {}).map(
          ([name, leaf]) => [`${node.metadata?.name} ${name}`, leaf] as const,
        ),
      ),
    );
  }

  /** Every join command has ended, and the two hours that a join may take are over at once. */
  async endJoins(): Promise<void> {
    const tokens = await this.first.output('kubeadm', 'token', 'list', '-o', 'jsonpath={.token}{"\\n"}');
    for (const token of tokens.split('\n').filter(Boolean))
      await this.first.output('kubeadm', 'token', 'delete', token);
    const place = { namespace: PKI_NAMESPACE, name: 'ca' };
    await this.eventually('the end of join commands to be known', async () => {
      return annotationsOf(await this.kube.get(SECRETS, place))[JOINS_END] !== undefined;
    });
    const annotations = { [JOINS_END]: new Date(Date.now() - 1000).toISOString() };
    await this.kube.patch(SECRETS, place, { type: 'merge', body: { metadata: { annotations } } });
  }

  /** What a person does once a year who has nothing else. */
  async renewByHand(): Promise<void> {
    this.#hands++;
    for (const node of this.controlPlane) {
      const { code, stderr } = await this.rig.kubeadm(node, ['certs', 'renew', 'all']);
      assert.equal(code, 0, stderr);
    }
    this.#hands++;
  }

  /** Gives undefined for what fails while kubeadm renews: it writes keys and certificates one after the other, in place. */
  async unlessByHand<T>(read: () => Promise<T>): Promise<T | undefined> {
    const before = this.#hands;
    try {
      return await read();
    } catch (error) {
      if (before % 2 === 0 && this.#hands === before) throw error;
      return undefined;
    }
  }

  /** What kubeadm says of every certificate of the control plane, by node. */
  async expirations(): Promise<ReadonlyMap<string, ReadonlyMap<string, ExpirationRow>>> {
    const rows = this.controlPlane.map(async node => [node.name, await expirationsOn(this.rig, node)] as const);
    return new Map(await Promise.all(rows));
  }

  /** `kubeadm certs check-expiration` works on every control-plane node, and shows what agents report. */
  async isKnownToKubeadm(): Promise<void> {
    for (const node of this.controlPlane) {
      const said = await expirationsOn(this.rig, node);
      const report = reportOf(await this.kube.get(NODES, { name: node.name }));
      assert.ok(report !== undefined);
      for (const [name, { notAfter }] of Object.entries(report.leaves)) {
        if (name === 'kubelet.conf') continue;
        assert.equal(Date.parse(said.get(name)?.expirationDate ?? ''), Date.parse(notAfter), `${name} on ${node.name}`);
      }
      for (const [name, { ends = '' }] of Object.entries(report.signers))
        assert.equal(Date.parse(said.get(name)?.expirationDate ?? ''), Date.parse(ends), `${name} on ${node.name}`);
    }
  }

  /** What kubelets, and all processes in containers, have written down about a certificate that somebody did not accept. */
  async refusalsInLogs(): Promise<readonly string[]> {
    const find = `{ cat /var/log/pods/*/*/*.log; journalctl -u kubelet -o cat --no-pager; } | grep -E '${REFUSAL}' || true`;
    const lines = await Promise.all(
      this.rig.nodes.map(async node => (await node.output('sh', '-c', find)).split('\n')),
    );
    return lines.flat().filter(Boolean);
  }

  /** What everybody says of the state of affairs, for whoever looks for a reason. */
  async story(): Promise<string> {
    const tolerant = async (what: string, find: () => Promise<string>) => `${what}: ${await find().catch(String)}`;
    const nodes = async () => {
      const { items } = await this.kube.list(NODES, {});
      return items.map(node => `${node.metadata?.name}: ${node.metadata?.annotations?.[NODE_REPORT]}`).join('\n');
    };
    const wanted = async () => {
      const { items } = await this.kube.list(CONFIG_MAPS, { namespace: PKI_NAMESPACE });
      return items.map(({ metadata, data }) => `${metadata?.name}: ${JSON.stringify(data).slice(0, 6000)}`).join('\n');
    };
    const pods = async () => {
      const { items } = await this.kube.list(PODS, {});
      return items
        .map(({ metadata, status }) => `${metadata?.name} ${JSON.stringify(status?.containerStatuses)}`)
        .join('\n');
    };
    const logs = this.rig.nodes.map(node =>
      tolerant(`log of ${node.name}`, () => node.output('sh', '-c', 'tail -n 30 /var/log/containers/kubeadm-*.log')),
    );
    const parts = [tolerant('nodes', nodes), tolerant('wanted', wanted), tolerant('pods', pods), ...logs];
    return (await Promise.all(parts)).join('\n\n');
  }
}

export function tell(line: string): void {
  console.log(`rig: ${line}`);
}

/** What kubeadm says of every certificate, by name; all of them are its own to renew. */
export async function expirationsOn(rig: Rig, node: RigNode): Promise<ReadonlyMap<string, ExpirationRow>> {
  const { code, stdout, stderr } = await rig.kubeadm(node, ['certs', 'check-expiration', '-o', 'json']);
  assert.equal(code, 0, stderr);
  const { certificates = [], certificateAuthorities = [] } = JSON.parse(stdout) as Record<string, ExpirationRow[]>;
  const rows = [...certificates, ...certificateAuthorities];
  assert.ok(rows.length > 10 && rows.every(({ externallyManaged }) => !externallyManaged), stdout);
  // How much is left is another number every second.
  return new Map(rows.map(row => [row.name, { ...row, residualTime: undefined }] as const));
}

function adminOf({ nodes }: Rig): string {
  return join((nodes[0] as RigNode).root, 'etc/kubernetes/admin.conf');
}

async function onEach(nodes: readonly RigNode[], command: string): Promise<string> {
  const of = async (node: RigNode) => `${node.name}\n${await node.output('sh', '-c', command)}`;
  return (await Promise.all(nodes.map(of))).join('\n');
}
