/** The real kubeadm, on folders of its own: its phases make them, its `certs check-expiration` judges them. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { KUBERNETES_VERSION } from '../../src/local/real/built-programs.ts';

/** A root file system in which kubeadm has been at work. */
export interface KubeadmRoot {
  readonly root: string;
  /** `etc/kubernetes` in it. */
  readonly folder: string;
  readonly configuration: ClusterFields;
}

/** Fields of ClusterConfiguration; `certificatesDir` is as seen from inside the root. */
export type ClusterFields = Readonly<Record<string, unknown>> & { readonly certificatesDir?: string };

export interface NodeFields {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

const NODE: NodeFields = { name: 'node-a', address: '192.0.2.10', port: 6443 };
const USUAL_DIRECTORY = '/etc/kubernetes/pki';
/** Making RSA keys on a busy machine takes a while. */
const PATIENCE_MS = 120_000;

/** Has kubeadm make the certificates and kubeconfigs of a control-plane node. Asks neither the network nor this machine for anything. */
export function kubeadmRoot(kubeadm: string, cluster: ClusterFields = {}, node: NodeFields = NODE): KubeadmRoot {
  const root = mkdtempSync(join(tmpdir(), 'rotunda-kubeadm-root-'));
  const folder = join(root, 'etc/kubernetes');
  mkdirSync(folder, { recursive: true });
  const made = { root, folder, configuration: cluster };
  const config = configFile(made, 'init.yaml', node, root);
  run([kubeadm, 'init', 'phase', 'certs', 'all', '--config', config]);
  run([kubeadm, 'init', 'phase', 'kubeconfig', 'all', '--config', config, '--kubeconfig-dir', folder]);
  return made;
}

/** Runs phases of `kubeadm init` against an API that is there. */
export function kubeadmPhases(
  kubeadm: string,
  made: KubeadmRoot,
  node: NodeFields,
  phases: readonly (readonly string[])[],
): void {
  // What goes into the cluster is what a node would say, where its root is the only one.
  const config = configFile(made, 'phases.yaml', node, '');
  for (const phase of phases) run([kubeadm, 'init', 'phase', ...phase, '--config', config]);
}

/** One row of `kubeadm certs check-expiration`. */
export interface ExpirationRow {
  readonly name: string;
  readonly expirationDate: string | null;
  readonly externallyManaged: boolean;
  readonly caName?: string;
  readonly missing: boolean;
}

/**
 * What kubeadm says of them. It looks for kubeconfigs in /etc/kubernetes only: where this user may not make the root that of kubeadm,
 * they are left out, and the answer says so.
 */
export function checkExpiration(
  kubeadm: string,
  made: KubeadmRoot,
): { rows: ExpirationRow[]; withKubeconfigs: boolean } {
  const change = rootChanger();
  const config = configFile(made, 'check.yaml', NODE, change === undefined ? made.root : '');
  const inside = change === undefined ? config : config.slice(made.root.length);
  const roots = change === undefined ? [] : ['--rootfs', made.root];
  const text = run([
    ...(change ?? []),
    kubeadm,
    'certs',
    'check-expiration',
    '--config',
    inside,
    '-o',
    'json',
    ...roots,
  ]);
  const { certificates, certificateAuthorities } = JSON.parse(text) as Record<string, ExpirationRow[]>;
  const rows = [...(certificates ?? []), ...(certificateAuthorities ?? [])];
  const withKubeconfigs = change !== undefined;
  return { rows: withKubeconfigs ? rows : rows.filter(({ name }) => !name.endsWith('.conf')), withKubeconfigs };
}

/** What to put before a command so that it may change its root; undefined: this user cannot. */
function rootChanger(): string[] | undefined {
  for (const before of [[], ['unshare', '--map-root-user']]) {
    const [command, ...args] = [...before, 'chroot', '/', 'true'];
    if (command !== undefined && spawnSync(command, args).status === 0) return before;
  }
  return undefined;
}

/** In the root, so that it is there for whoever runs inside; `base` stands before paths for whoever does not. */
function configFile({ root, configuration }: KubeadmRoot, name: string, node: NodeFields, base: string): string {
  const { certificatesDir = USUAL_DIRECTORY, ...more } = configuration;
  const documents = [
    {
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'InitConfiguration',
      // Without these it looks for a container runtime, a host name and a default route.
      nodeRegistration: { name: node.name, criSocket: 'unix:///nowhere.sock' },
      localAPIEndpoint: { advertiseAddress: node.address, bindPort: node.port },
    },
    {
      apiVersion: 'kubeadm.k8s.io/v1beta4',
      kind: 'ClusterConfiguration',
      // Without a version it asks the internet for the latest.
      kubernetesVersion: KUBERNETES_VERSION,
      certificatesDir: `${base}${certificatesDir}`,
      ...more,
    },
  ];
  const path = join(root, name);
  writeFileSync(path, documents.map(document => dump(document)).join('---\n'));
  return path;
}

function run([command = '', ...args]: readonly string[]): string {
  const env = { PATH: process.env.PATH ?? '', TZ: 'UTC' };
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', env, timeout: PATIENCE_MS });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${error?.message ?? ''}${stderr}${stdout}`);
  return stdout;
}
