import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server, type TLSSocket } from 'node:tls';
import { fixedAccess } from '../../src/kube/access.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { days } from '../../src/kube/duration.ts';
import { NAMESPACES } from '../../src/kube/resource.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { freePorts } from '../tools/free-ports.ts';
import type { Binaries } from './binaries.ts';

const HOST = '127.0.0.1';
const LAST_WORDS = 2_000;

export interface PairFiles {
  readonly certificate: string;
  readonly key: string;
}

/** The files that kube-apiserver is given, by name. */
export const FILES = {
  serving: pairFiles('serving'),
  sni: pairFiles('sni'),
  proxyClient: pairFiles('proxy-client'),
  kubeletClient: pairFiles('kubelet-client'),
  etcdClient: pairFiles('etcd-client'),
  clientCa: 'client-ca.crt',
  proxyCa: 'proxy-ca.crt',
  etcdCa: 'etcd-ca.crt',
  kubeletCa: 'kubelet-ca.crt',
  tokenKey: 'token.key',
  tokenPublicKeys: 'token.pub',
} as const;

/** A real kube-apiserver over a real etcd, all of whose files a test may change. A second etcd endpoint is the test's own. */
export class ReloadedServer {
  readonly url: string;
  readonly servingCa: CertificateAndKey;
  readonly clientCa: CertificateAndKey;
  readonly proxyCa: CertificateAndKey;
  readonly otherEtcd: ListeningPeer;
  readonly #dir: string;
  readonly #binaries: Binaries;
  readonly #flags: readonly string[];
  readonly #etcd: ChildProcess;
  #child: ChildProcess;

  private constructor(parts: {
    url: string;
    authorities: { servingCa: CertificateAndKey; clientCa: CertificateAndKey; proxyCa: CertificateAndKey };
    otherEtcd: ListeningPeer;
    dir: string;
    binaries: Binaries;
    flags: readonly string[];
    etcd: ChildProcess;
  }) {
    this.url = parts.url;
    ({ servingCa: this.servingCa, clientCa: this.clientCa, proxyCa: this.proxyCa } = parts.authorities);
    this.otherEtcd = parts.otherEtcd;
    this.#dir = parts.dir;
    this.#binaries = parts.binaries;
    this.#flags = parts.flags;
    this.#etcd = parts.etcd;
    this.#child = this.#spawn();
  }

  static async start(binaries: Binaries, sniName: string): Promise<ReloadedServer> {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-reload-'));
    const [servingCa, clientCa, proxyCa] = await Promise.all(['serving-ca', 'client-ca', 'proxy-ca'].map(authority));
    const authorities = { servingCa, clientCa, proxyCa } as Record<
      'servingCa' | 'clientCa' | 'proxyCa',
      CertificateAndKey
    >;
    const [etcdPort, peerPort, apiPort] = await freePorts(3);
    const serving = await servingOf(authorities.servingCa, [HOST, 'localhost', 'kubernetes']);
    const client = await clientOf(authorities.clientCa, 'client', ['system:masters']);
    writePair(dir, FILES.serving, serving);
    writePair(dir, FILES.sni, await servingOf(authorities.servingCa, [sniName]));
    writePair(dir, { certificate: 'etcd.crt', key: 'etcd.key' }, serving);
    for (const files of [FILES.proxyClient, FILES.kubeletClient, FILES.etcdClient]) writePair(dir, files, client);
    write(dir, FILES.clientCa, pem(authorities.clientCa));
    write(dir, FILES.proxyCa, pem(authorities.proxyCa));
    for (const file of [FILES.etcdCa, FILES.kubeletCa]) write(dir, file, pem(authorities.servingCa));
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    write(dir, FILES.tokenKey, privateKey.export({ format: 'pem', type: 'pkcs1' }).toString());
    write(dir, FILES.tokenPublicKeys, publicKey.export({ format: 'pem', type: 'spki' }).toString());

    const etcdUrl = `https://${HOST}:${etcdPort}`;
    const etcd = start(dir, binaries.etcd, [
      `--data-dir=${join(dir, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=http://${HOST}:${peerPort}`,
      '--unsafe-no-fsync',
      `--cert-file=${join(dir, 'etcd.crt')}`,
      `--key-file=${join(dir, 'etcd.key')}`,
      '--client-cert-auth',
      `--trusted-ca-file=${join(dir, FILES.clientCa)}`,
    ]);
    const otherEtcd = await listenAs(serving);
    const server = new ReloadedServer({
      url: `https://${HOST}:${apiPort}`,
      authorities,
      otherEtcd,
      dir,
      binaries,
      flags: flagsFor(dir, sniName, apiPort as number, [etcdUrl, `https://${HOST}:${otherEtcd.port}`]),
      etcd,
    });
    try {
      await server.#answers();
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Replaces a file in one step, as the cert syncer does. */
  write(file: string, text: string): void {
    write(this.#dir, file, text);
  }

  writePair(files: PairFiles, pair: CertificateAndKey): void {
    writePair(this.#dir, files, pair);
  }

  textOf(file: string): string {
    return readFileSync(join(this.#dir, file), 'utf8');
  }

  async restart(): Promise<void> {
    await end(this.#child);
    this.#child = this.#spawn();
    await this.#answers();
  }

  async stop(): Promise<void> {
    await end(this.#child);
    await end(this.#etcd);
    await this.otherEtcd.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #spawn(): ChildProcess {
    return start(this.#dir, this.#binaries['kube-apiserver'], this.#flags);
  }

  async #answers(): Promise<void> {
    const client = await clientOf(this.clientCa, 'admin', ['system:masters']);
    const tls = { ca: pem(this.servingCa), certificate: pem(client), key: encodePrivateKey(client.key) };
    const kube = new HttpKube(fixedAccess(this.url, { tls }));
    const log = () => readFileSync(join(this.#dir, 'kube-apiserver.log'), 'utf8').slice(-LAST_WORDS);
    try {
      await eventually('kube-apiserver answers', () => this.isRunning && kube.list(NAMESPACES), log);
    } finally {
      await kube.close();
    }
  }
}

function flagsFor(dir: string, sniName: string, port: number, etcd: readonly string[]): string[] {
  const at = (file: string) => join(dir, file);
  return [
    `--etcd-servers=${etcd.join(',')}`,
    `--etcd-cafile=${at(FILES.etcdCa)}`,
    `--etcd-certfile=${at(FILES.etcdClient.certificate)}`,
    `--etcd-keyfile=${at(FILES.etcdClient.key)}`,
    `--bind-address=${HOST}`,
    `--advertise-address=${HOST}`,
    `--secure-port=${port}`,
    `--tls-cert-file=${at(FILES.serving.certificate)}`,
    `--tls-private-key-file=${at(FILES.serving.key)}`,
    `--tls-sni-cert-key=${at(FILES.sni.certificate)},${at(FILES.sni.key)}:${sniName}`,
    `--client-ca-file=${at(FILES.clientCa)}`,
    `--requestheader-client-ca-file=${at(FILES.proxyCa)}`,
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    `--proxy-client-cert-file=${at(FILES.proxyClient.certificate)}`,
    `--proxy-client-key-file=${at(FILES.proxyClient.key)}`,
    `--kubelet-client-certificate=${at(FILES.kubeletClient.certificate)}`,
    `--kubelet-client-key=${at(FILES.kubeletClient.key)}`,
    `--kubelet-certificate-authority=${at(FILES.kubeletCa)}`,
    '--kubelet-preferred-address-types=InternalIP',
    '--service-cluster-ip-range=10.0.0.0/24',
    `--service-account-key-file=${at(FILES.tokenPublicKeys)}`,
    `--service-account-signing-key-file=${at(FILES.tokenKey)}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--authorization-mode=Node,RBAC',
    '--endpoint-reconciler-type=none',
    '--shutdown-delay-duration=0s',
  ];
}

/** A TLS server that notes who connects to it. It speaks no protocol: who connects is all that is asked. */
export interface ListeningPeer {
  readonly port: number;
  /** Serial number of the certificate that the last accepted client showed. */
  readonly lastClient: string | undefined;
  /** Handshakes that both sides completed, and those that the client ended. */
  readonly accepted: number;
  readonly refusedBy: number;
  /** Shows another certificate from now on. */
  show(pair: CertificateAndKey): void;
  /** Ends all connections, so that clients have to make new ones. */
  disconnect(): void;
  close(): Promise<void>;
}

export async function listenAs(pair: CertificateAndKey): Promise<ListeningPeer> {
  const sockets = new Set<TLSSocket>();
  let lastClient: string | undefined;
  let [accepted, refusedBy] = [0, 0];
  const server: Server = createServer(
    { ...tlsOf(pair), requestCert: true, rejectUnauthorized: false, ALPNProtocols: ['h2', 'http/1.1'] },
    socket => {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
      // In TLS 1.3 a client that does not accept the server may say so only now; one that writes has accepted it.
      socket.once('data', () => {
        accepted++;
        lastClient = socket.getPeerX509Certificate()?.serialNumber;
        if (socket.alpnProtocol !== 'h2')
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}');
      });
    },
  );
  server.on('tlsClientError', () => refusedBy++);
  await new Promise<void>(resolve => server.listen(0, HOST, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get lastClient() {
      return lastClient;
    },
    get accepted() {
      return accepted;
    },
    get refusedBy() {
      return refusedBy;
    },
    show: next => server.setSecureContext(tlsOf(next)),
    disconnect() {
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

export function authority(commonName: string): Promise<CertificateAndKey> {
  return issueSigner({ ...issuing(), commonName });
}

export function clientOf(signer: CertificateAndKey, name: string, groups: string[]): Promise<CertificateAndKey> {
  return issueClient({ ...issuing(), signer, user: { name, groups } });
}

export function servingOf(signer: CertificateAndKey, hostnames: readonly string[]): Promise<CertificateAndKey> {
  return issueServing({ ...issuing(), signer, hostnames });
}

export function pem({ chain }: CertificateAndKey): string {
  return encodeCertificates(chain);
}

function issuing() {
  return { keys: systemKeys, now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' } as const;
}

function tlsOf(pair: CertificateAndKey): { cert: string; key: string } {
  return { cert: pem(pair), key: encodePrivateKey(pair.key) };
}

function pairFiles(name: string): PairFiles {
  return { certificate: `${name}.crt`, key: `${name}.key` };
}

function writePair(dir: string, { certificate, key }: PairFiles, pair: CertificateAndKey): void {
  write(dir, certificate, pem(pair));
  write(dir, key, encodePrivateKey(pair.key));
}

function write(dir: string, file: string, text: string): void {
  writeFileSync(join(dir, `.${file}`), text, { mode: 0o600 });
  renameSync(join(dir, `.${file}`), join(dir, file));
}

function start(dir: string, program: string, args: readonly string[]): ChildProcess {
  const log = openSync(join(dir, `${program.split('/').at(-1)}.log`), 'a', 0o600);
  const child = spawn(program, args, { stdio: ['ignore', log, log], cwd: dir });
  closeSync(log);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
