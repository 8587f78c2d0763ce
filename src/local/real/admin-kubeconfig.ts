import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { dump } from 'js-yaml';
import { days } from '../../kube/duration.ts';
import { issueClient } from '../../pki/issue.ts';
import { keyAlgorithmOf, systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { ensureFile, writeFileAtomically } from '../../staticpod/node/atomic-write.ts';
import { systemFiles } from '../../staticpod/node/files.ts';
import { EXTERNAL_NAME } from '../cluster-inputs.ts';
import type { FoundingKeys } from './founding-keys.ts';

/** The administrator's way to a self-hosted API: a kubeconfig, and beside it the CA bundle, which changes under it. */
export interface AdminAccess {
  readonly kubeconfigPath: string;
  readonly caPath: string;
}

const LIFETIME_MS = days(3650);
const SERVER = /^\s*server: "?https:\/\/[^\s"]+:(\d+)/m;

export function adminAccess(dir: string): AdminAccess {
  return { kubeconfigPath: join(dir, 'kubeconfig'), caPath: join(dir, 'kube-apiserver-ca.crt') };
}

/** Writes the kubeconfig for a server; one that already leads there stays. */
export async function ensureAdminKubeconfig(access: AdminAccess, server: string, keys: FoundingKeys): Promise<void> {
  const { kubeconfigPath, caPath } = access;
  if (existsSync(kubeconfigPath) && serverPort(access) === Number(new URL(server).port)) return;
  const client = await issueClient({
    keys: systemKeys,
    algorithm: keyAlgorithmOf(keys.admin.key),
    now: new Date(),
    lifetimeMs: LIFETIME_MS,
    signer: keys.admin,
    user: { name: 'system:admin', groups: ['system:masters'] },
  });
  const text = kubeconfig(server, basename(caPath), encodeCertificates(client.chain), encodePrivateKey(client.key));
  await writeFileAtomically(systemFiles(), kubeconfigPath, Buffer.from(text), 0o600);
}

/** Replaces the CA bundle; whoever uses the kubeconfig verifies with it from then on. */
export async function writeServerCa({ caPath }: AdminAccess, bundle: string): Promise<void> {
  const files = systemFiles();
  await files.makeDirectory(dirname(caPath));
  await ensureFile(files, caPath, Buffer.from(bundle), 0o644);
}

/** The port the kubeconfig leads to; 0 when there is none. */
export function serverPort({ kubeconfigPath }: AdminAccess): number {
  if (!existsSync(kubeconfigPath)) return 0;
  return Number(SERVER.exec(readFileSync(kubeconfigPath, 'utf8'))?.[1] ?? 0);
}

function kubeconfig(server: string, caFile: string, certificate: string, key: string): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  return dump({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'rotunda',
        // The load balancer is found by its address, and proves the name that the operators know.
        cluster: { server, 'tls-server-name': EXTERNAL_NAME, 'certificate-authority': caFile },
      },
    ],
    users: [
      { name: 'admin', user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) } },
    ],
    contexts: [{ name: 'admin', context: { cluster: 'rotunda', user: 'admin', namespace: 'default' } }],
    'current-context': 'admin',
  });
}
