import { createHash } from 'node:crypto';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import type { Condition } from '../../src/controller/condition.ts';
import { createLog, silentLog } from '../../src/controller/log.ts';
import { days } from '../../src/kube/duration.ts';
import { SECRETS } from '../../src/kube/resource.ts';
import { OPERAND_NAMESPACE } from '../../src/kube-apiserver/namespaces.ts';
import {
  CLUSTER,
  INFRASTRUCTURES,
  KUBE_API_SERVERS,
  type KubeAPIServerStatus,
} from '../../src/kube-apiserver/resources.ts';
import { API_PORT } from '../../src/kube-apiserver/target-config/pod.ts';
import { type LocalCluster, type LocalClusterOptions, startLocalCluster } from '../../src/local/cluster.ts';
import { kubeApiserverPart } from '../../src/local/kube-apiserver-part.ts';
import type { LocalNode } from '../../src/local/node.ts';
import type { ClusterPart, RunningPart } from '../../src/local/part.ts';
import type { LoadedReport } from '../../src/local/stand-in-input.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';

/** Where the operator may say what it does, for whoever wants to know. */
const logFile = process.env.ROTUNDA_TEST_LOG;

/** A local cluster in a directory of its own, with stand-ins, and nothing that makes people wait. */
export async function startTestCluster(
  options: Partial<LocalClusterOptions> = {},
): Promise<LocalCluster & { readonly dir: string; stop(): Promise<void> }> {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'rotunda-kube-apiserver-'));
  const cluster = await startLocalCluster({
    dir,
    workers: 0,
    keyAlgorithm: 'P-256',
    settleMs: 0,
    minReadyMs: 0,
    programs: { useRealBinaries: false },
    log:
      logFile === undefined
        ? silentLog
        : createLog({ name: 'cluster', destination: { write: line => appendFileSync(logFile, line) } }),
    ...options,
    parts: [manyNodesPart(), ...(options.parts ?? [kubeApiserverPart])],
  });
  return {
    ...cluster,
    dir,
    async stop() {
      await cluster.close();
      rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    },
  };
}

/**
 * Says that there are several control-plane nodes, also of a cluster with one: the startup monitor of single nodes would add five
 * seconds to every revision, and has tests of its own.
 */
function manyNodesPart(): ClusterPart {
  return {
    name: 'topology',
    async start({ kube, signal }) {
      const body = { status: { controlPlaneTopology: 'HighlyAvailable' } };
      await kube.patch(INFRASTRUCTURES, CLUSTER, { type: 'merge', body }, { subresource: 'status' });
      return partThatIsDone(signal);
    },
  };
}

/** A part that has done its work when it has started. */
export function partThatIsDone(signal: AbortSignal): RunningPart {
  const ended = new Promise<void>(done => signal.addEventListener('abort', () => done(), { once: true }));
  return { ended, state: () => ({ ready: true, text: 'done' }) };
}

/** What a server on a node answers, and the certificate it shows for a name. */
export async function ask(
  { address }: LocalNode,
  path: string,
  { servername = '', ...tls }: { servername?: string; cert?: string; key?: string; ca?: string } = {},
): Promise<{ peer: Buffer; answer: unknown }> {
  return new Promise((resolve, reject) => {
    const verify = { rejectUnauthorized: tls.ca !== undefined };
    const sent = request(
      { host: address, port: API_PORT, path, servername, agent: false, timeout: PATIENCE_MS, ...tls, ...verify },
      response => {
        const { raw } = (response.socket as TLSSocket).getPeerCertificate();
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({
            peer: raw,
            answer: response.headers['content-type'] === 'application/json' ? JSON.parse(text) : text,
          });
        });
      },
    );
    sent.once('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.once('error', reject);
    sent.end();
  });
}

/** What the stand-in on a node has loaded. */
export async function loadedOn(node: LocalNode): Promise<{ pid: number; inputs: readonly LoadedReport[] }> {
  const { answer } = await ask(node, '/rotunda.dev/loaded');
  return answer as { pid: number; inputs: readonly LoadedReport[] };
}

export async function statusOf({ kube }: LocalCluster): Promise<KubeAPIServerStatus> {
  return (await kube.get(KUBE_API_SERVERS, CLUSTER)).status ?? {};
}

/** Conditions that tell of trouble or of work under way. */
export async function unwellConditions(cluster: LocalCluster): Promise<Condition[]> {
  const { conditions = [] } = await statusOf(cluster);
  return conditions.filter(({ type, status }) =>
    /(Degraded|Progressing)$/.test(type) ? status !== 'False' : type.endsWith('Available') && status !== 'True',
  );
}

/** Removes the note when a certificate ends: it is made anew at once (spec 70, 1.3). */
export async function forceRotation({ kube }: LocalCluster, namespace: string, name: string): Promise<void> {
  const path = `/metadata/annotations/${NOT_AFTER.replace('/', '~1')}`;
  await kube.patch(SECRETS, { namespace, name }, { type: 'json', body: [{ op: 'remove', path }] });
}

export function fileOn(node: LocalNode, path: string): string {
  return readFileSync(join(node.root, path), 'utf8');
}

export const ISSUE = { keys: systemKeys, algorithm: 'P-256', lifetimeMs: days(30) } as const;

export const newCa = (commonName: string): Promise<CertificateAndKey> =>
  issueSigner({ ...ISSUE, now: new Date(), commonName });
export const newClient = async (name: string): Promise<CertificateAndKey> =>
  issueClient({ ...ISSUE, now: new Date(), signer: await newCa(`${name}-ca`), user: { name } });
export const newServing = async (hostname: string): Promise<CertificateAndKey> =>
  issueServing({ ...ISSUE, now: new Date(), signer: await newCa(`${hostname}-ca`), hostnames: [hostname] });

export const bundleOf = (...cas: readonly CertificateAndKey[]): string =>
  cas.map(({ chain }) => encodeCertificates(chain)).join('');

export function pairData({ chain, key }: CertificateAndKey): Record<string, string> {
  return { 'tls.crt': base64(encodeCertificates(chain)), 'tls.key': base64(encodePrivateKey(key)) };
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64');
export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
export { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
export { OPERAND_NAMESPACE };
