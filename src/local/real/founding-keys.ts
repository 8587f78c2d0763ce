import { createPublicKey, type KeyObject } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { days } from '../../kube/duration.ts';
import { type CertificateAndKey, loadCertificateAndKey } from '../../pki/authority.ts';
import { issueSigner } from '../../pki/issue.ts';
import { type KeyAlgorithm, systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readPrivateKey } from '../../pki/pem.ts';
import { readIfThere, writeFileAtomically } from '../../staticpod/node/atomic-write.ts';
import { systemFiles } from '../../staticpod/node/files.ts';

/** What the installer of a cluster makes and no operator here renews. It stays in the cluster's directory. */
export interface FoundingKeys {
  /** Signs the administrator's client certificate. */
  readonly admin: CertificateAndKey;
  /** With it kube-controller-manager signs tokens of service accounts that are kept in Secrets. */
  readonly tokens: KeyObject;
  /** Where that is, for programs that read files. */
  readonly tokensFile: string;
}

const LIFETIME_MS = days(3650);

/** The keys in `dir`, made where they are not there yet. */
export async function foundingKeys(dir: string, algorithm: KeyAlgorithm = 'RSA-2048'): Promise<FoundingKeys> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const tokensFile = join(dir, 'service-account.key');
  return {
    admin: await signer(dir, 'admin-kubeconfig-signer', algorithm),
    tokens: readPrivateKey(await kept(tokensFile, async () => encodePrivateKey(await systemKeys.generate(algorithm)))),
    tokensFile,
  };
}

/** The public half of the token key, as PEM. */
export function publicTokenKey({ tokens }: FoundingKeys): string {
  return createPublicKey(tokens).export({ format: 'pem', type: 'spki' }).toString();
}

/** Certificate and key are one file, so that a crash leaves both or none. */
async function signer(dir: string, name: string, algorithm: KeyAlgorithm): Promise<CertificateAndKey> {
  const text = await kept(join(dir, `${name}.pem`), async () => {
    const { chain, key } = await issueSigner({
      keys: systemKeys,
      algorithm,
      now: new Date(),
      lifetimeMs: LIFETIME_MS,
      commonName: name,
    });
    return `${encodeCertificates(chain)}${encodePrivateKey(key)}`;
  });
  const [certificates, key] = splitPair(text);
  return loadCertificateAndKey(certificates, key);
}

function splitPair(text: string): [certificates: string, key: string] {
  const at = text.search(/-----BEGIN [A-Z ]*PRIVATE KEY-----/);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at)];
}

async function kept(path: string, make: () => Promise<string>): Promise<string> {
  const files = systemFiles();
  const found = await readIfThere(files, path);
  if (found !== undefined) return found.toString();
  const text = await make();
  await writeFileAtomically(files, path, Buffer.from(text), 0o600);
  return text;
}
