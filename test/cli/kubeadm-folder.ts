/** A folder as kubeadm fills it, made with our own certificates: fast, and with any dates. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { kubeconfigFor } from '../../src/api/kubeconfig.ts';
import { days } from '../../src/kube/duration.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type SignerName } from '../../src/kubeadm/chains.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';

export interface KubeadmFolder {
  readonly dir: string;
  readonly signers: Readonly<Record<SignerName, CertificateAndKey>>;
  write(path: string, text: string): void;
  writePair(base: string, pair: CertificateAndKey): void;
}

export interface FolderOptions {
  readonly now: Date;
  readonly leafDays?: number | undefined;
  /** Of the server in kubeconfigs, and in the certificate of kube-apiserver. */
  readonly server?: string | undefined;
  readonly hostnames?: readonly string[] | undefined;
}

/** Fills `etc/kubernetes` of a new folder; it is gone when the test ends. */
export async function kubeadmFolder(t: Pick<TestContext, 'after'>, options: FolderOptions): Promise<KubeadmFolder> {
  const { now, leafDays = 365, server = 'https://192.0.2.10:6443', hostnames = ['192.0.2.10', 'kubernetes'] } = options;
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-kubeadm-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const issue = (validityDays: number) =>
    ({ keys: systemKeys, now, lifetimeMs: days(validityDays), algorithm: 'P-256' }) as const;
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text, { mode: 0o600 });
  };
  const writePair = (base: string, { chain, key }: CertificateAndKey) => {
    write(`pki/${base}.crt`, encodeCertificates(chain));
    write(`pki/${base}.key`, encodePrivateKey(key));
  };
  const signers = {} as Record<SignerName, CertificateAndKey>;
  for (const { name, base, commonName, validityDays } of KUBEADM_SIGNERS) {
    signers[name] = await issueSigner({ ...issue(validityDays), commonName });
    writePair(base, signers[name]);
  }
  for (const { target, signer, creator } of KUBEADM_CHAINS) {
    const common = { ...issue(leafDays), signer: signers[signer] };
    const named = (name: string) => name.replace('<node>', 'node-a');
    const pair =
      creator.kind === 'client'
        ? await issueClient({ ...common, user: { ...creator.user, name: named(creator.user.name) } })
        : await issueServing({
            ...common,
            hostnames: [...hostnames, 'localhost', '127.0.0.1'],
            hooks: [
              template => {
                template.subject = { commonName: named(creator.commonName), organizations: [] };
              },
            ],
          });
    if (target.kind === 'pair') writePair(target.base, pair);
    else write(target.file, kubeconfigFor(server, signers.ca, pair));
  }
  write('pki/sa.pub', '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n');
  return { dir, signers, write, writePair };
}
