import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeconfigFor } from '../../src/api/kubeconfig.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { days } from '../../src/kube/duration.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { NAMESPACES, SERVICE_ACCOUNTS } from '../../src/kube/resource.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';
import { eventuallyDespiteErrors } from '../tools/eventually.ts';
import { freePorts } from '../tools/free-ports.ts';
import type { Binaries } from './binaries.ts';

/** A control plane of real programs on loopback: one etcd, one kube-apiserver, one kube-controller-manager. */
export interface ControlPlane {
  readonly dir: string;
  /** Path of a kubeconfig of group system:masters. */
  readonly kubeconfig: string;
  readonly kube: HttpKube;
  readonly server: string;
  /** Where every request is written down, without bodies; where that was asked for. */
  readonly auditLog: string | undefined;
  /** Writes a kubeconfig for another identity and gives its path. */
  kubeconfigOf(user: string, groups?: readonly string[]): Promise<string>;
  /** Writes a kubeconfig for whoever holds the token and gives its path. */
  kubeconfigWithToken(name: string, token: string): string;
  stop(): Promise<void>;
}

const HOST = '127.0.0.1';
const STOP_PATIENCE_MS = 15_000;
const LAST_LOG_BYTES = 3_000;

export interface ControlPlaneOptions {
  /** Have kube-apiserver write down every request. */
  readonly audit?: boolean | undefined;
}

/** Starts it, and waits until it serves and has made its first ServiceAccount. */
export async function startControlPlane(
  binaries: Binaries,
  { audit = false }: ControlPlaneOptions = {},
): Promise<ControlPlane> {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-control-plane-'));
  const children: ChildProcess[] = [];
  const start = (program: keyof Binaries, args: readonly string[]) => {
    const log = openSync(join(dir, `${program}.log`), 'a', 0o600);
    children.push(spawn(binaries[program], args, { stdio: ['ignore', log, log], cwd: dir }));
    closeSync(log);
  };
  const stop = async () => {
    for (const child of children.toReversed()) await end(child);
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const [etcdClient, etcdPeer, apiPort, managerPort] = (await freePorts(4)) as [number, number, number, number];
    const server = `https://${HOST}:${apiPort}`;
    const pki = await makePki(dir);
    const etcd = `http://${HOST}:${etcdClient}`;
    start('etcd', [
      `--data-dir=${join(dir, 'etcd')}`,
      `--listen-client-urls=${etcd}`,
      `--advertise-client-urls=${etcd}`,
      `--listen-peer-urls=http://${HOST}:${etcdPeer}`,
      '--unsafe-no-fsync',
    ]);
    const auditLog = audit ? join(dir, 'audit.log') : undefined;
    start('kube-apiserver', [...apiServerFlags(dir, etcd, apiPort), ...auditFlags(dir, auditLog)]);
    const adminKubeconfig = join(dir, 'kubeconfig');
    const kubeconfigOf = async (user: string, groups: readonly string[] = []) => {
      const client = await issueClient({
        ...pki.issue(),
        signer: pki.clientCa,
        user: { name: user, groups: [...groups] },
      });
      const path = join(dir, `${user.replaceAll(/[^a-z0-9-]/gi, '_')}.kubeconfig`);
      writeFileSync(path, kubeconfigFor(server, pki.servingCa, client), { mode: 0o600 });
      return path;
    };
    const kubeconfigWithToken = (name: string, token: string) => {
      const path = join(dir, `${name}.kubeconfig`);
      writeFileSync(path, tokenKubeconfig(server, pki.servingCa, token), { mode: 0o600 });
      return path;
    };
    const admin = await kubeconfigOf('admin', ['system:masters']);
    writeFileSync(adminKubeconfig, readFileSync(admin), { mode: 0o600 });
    const kube = new HttpKube(await loadAccess({ path: adminKubeconfig }));
    const logOf = (program: string) => readFileSync(join(dir, `${program}.log`), 'utf8').slice(-LAST_LOG_BYTES);
    await eventuallyDespiteErrors(
      'kube-apiserver answers',
      () => kube.list(NAMESPACES, {}),
      () => logOf('kube-apiserver'),
    );
    start('kube-controller-manager', managerFlags(dir, adminKubeconfig, managerPort));
    await eventuallyDespiteErrors(
      'the default ServiceAccount',
      () => kube.get(SERVICE_ACCOUNTS, { namespace: 'default', name: 'default' }),
      () => logOf('kube-controller-manager'),
    );
    return {
      dir,
      kubeconfig: adminKubeconfig,
      kube,
      server,
      auditLog,
      kubeconfigOf,
      kubeconfigWithToken,
      async stop() {
        await kube.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function apiServerFlags(dir: string, etcd: string, port: number): string[] {
  return [
    `--etcd-servers=${etcd}`,
    `--bind-address=${HOST}`,
    `--advertise-address=${HOST}`,
    `--secure-port=${port}`,
    `--tls-cert-file=${join(dir, 'serving.crt')}`,
    `--tls-private-key-file=${join(dir, 'serving.key')}`,
    `--client-ca-file=${join(dir, 'client-ca.crt')}`,
    '--service-cluster-ip-range=10.0.0.0/24',
    `--service-account-key-file=${join(dir, 'sa.pub')}`,
    `--service-account-signing-key-file=${join(dir, 'sa.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--endpoint-reconciler-type=none',
    // As every installer sets it: agents and installers run as root.
    '--allow-privileged=true',
  ];
}

/** Who asked for what, and what came of it: written when the answer is known, for watches already when they begin. */
const AUDIT_POLICY = JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata' }] });

function auditFlags(dir: string, log: string | undefined): string[] {
  if (log === undefined) return [];
  const policy = join(dir, 'audit-policy.json');
  writeFileSync(policy, AUDIT_POLICY, { mode: 0o600 });
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`, '--audit-log-mode=blocking'];
}

function tokenKubeconfig(server: string, ca: CertificateAndKey, token: string): string {
  const name = 'test';
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(encodeCertificates(ca.chain)) } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function managerFlags(dir: string, kubeconfig: string, port: number): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--bind-address=${HOST}`,
    `--secure-port=${port}`,
    '--leader-elect=false',
    `--service-account-private-key-file=${join(dir, 'sa.key')}`,
    `--root-ca-file=${join(dir, 'serving-ca.crt')}`,
  ];
}

interface Pki {
  readonly servingCa: CertificateAndKey;
  readonly clientCa: CertificateAndKey;
  issue(): { keys: typeof systemKeys; now: Date; lifetimeMs: number; algorithm: 'P-256' };
}

async function makePki(dir: string): Promise<Pki> {
  const issue = () => ({ keys: systemKeys, now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' as const });
  const [servingCa, clientCa] = await Promise.all([
    issueSigner({ ...issue(), commonName: 'test-serving-ca' }),
    issueSigner({ ...issue(), commonName: 'test-client-ca' }),
  ]);
  const serving = await issueServing({ ...issue(), signer: servingCa, hostnames: [HOST, 'localhost', 'kubernetes'] });
  const account = generateKeyPairSync('rsa', { modulusLength: 2048 });
  mkdirSync(dir, { recursive: true });
  const files = {
    'serving.crt': encodeCertificates(serving.chain),
    'serving.key': encodePrivateKey(serving.key),
    'serving-ca.crt': encodeCertificates(servingCa.chain),
    'client-ca.crt': encodeCertificates(clientCa.chain),
    'sa.key': account.privateKey.export({ format: 'pem', type: 'pkcs1' }),
    'sa.pub': account.publicKey.export({ format: 'pem', type: 'spki' }),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text, { mode: 0o600 });
  return { servingCa, clientCa, issue };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise(resolve => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_PATIENCE_MS);
  await exited;
  clearTimeout(timer);
}
