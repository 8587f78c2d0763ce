import type { KeyObject } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../kube/clock.ts';
import { days } from '../kube/duration.ts';
import { type CertificateAndKey, loadCertificateAndKey, ownCertificate } from '../pki/authority.ts';
import { hostMatches } from '../pki/host-match.ts';
import { issueClient, issueServing, issueSigner } from '../pki/issue.ts';
import type { Keys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readPrivateKey } from '../pki/pem.ts';
import { SYSTEM_MASTERS } from './auth/user.ts';
import { readIfThere, writeAtomically } from './files.ts';

/** The keys and certificates of the server itself. */
export interface Identity {
  /** Signs what the server shows. */
  readonly servingCa: CertificateAndKey;
  /** Signs what clients show. */
  readonly clientCa: CertificateAndKey;
  readonly serving: CertificateAndKey;
  readonly admin: CertificateAndKey;
  readonly tokenKey: KeyObject;
}

const CA_LIFETIME_MS = days(3650);
const LEAF_LIFETIME_MS = days(365);
/** A leaf with less than this ahead of it is replaced. */
export const RENEW_BEFORE_MS = days(30);

export interface IdentityOptions {
  /** Absent: nothing is kept. */
  readonly dir?: string | undefined;
  readonly keys: Keys;
  readonly clock: Clock;
  readonly hostnames: readonly string[];
}

/** Loads the server's identity, and makes what is missing, unfit or about to expire. */
export async function loadIdentity(options: IdentityOptions): Promise<Identity> {
  const { keys, clock } = options;
  const now = clock.now();
  const common = { keys, now, algorithm: 'P-256' } as const;
  const ca = (commonName: string) => issueSigner({ ...common, lifetimeMs: CA_LIFETIME_MS, commonName });
  const servingCa = await keep(options, 'serving-ca', isFresh(now), () => ca('rotunda-serving-ca'));
  const clientCa = await keep(options, 'client-ca', isFresh(now), () => ca('rotunda-client-ca'));
  const hostnames = [...new Set(['localhost', '127.0.0.1', '::1', hostname(), ...SERVICE_NAMES, ...options.hostnames])];
  const serving = await keep(
    options,
    'serving',
    pair =>
      isFresh(now)(pair) && isFrom(servingCa)(pair) && hostnames.every(host => hostMatches(ownCertificate(pair), host)),
    () => issueServing({ ...common, lifetimeMs: LEAF_LIFETIME_MS, signer: servingCa, hostnames }),
  );
  const admin = await keep(
    options,
    'admin',
    pair => isFresh(now)(pair) && isFrom(clientCa)(pair),
    () => issueClient({ ...common, lifetimeMs: LEAF_LIFETIME_MS, signer: clientCa, user: ADMIN_USER }),
  );
  return { servingCa, clientCa, serving, admin, tokenKey: await keepKey(options) };
}

const SERVICE_NAMES = [
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];

const ADMIN_USER = { name: 'system:admin', groups: [SYSTEM_MASTERS] };

function isFresh(now: Date): (pair: CertificateAndKey) => boolean {
  return pair => ownCertificate(pair).notAfter.getTime() - now.getTime() > RENEW_BEFORE_MS;
}

function isFrom(signer: CertificateAndKey): (pair: CertificateAndKey) => boolean {
  return pair => ownCertificate(pair).issuer.der.equals(ownCertificate(signer).subject.der);
}

async function keep(
  { dir }: IdentityOptions,
  name: string,
  isGood: (pair: CertificateAndKey) => boolean,
  make: () => Promise<CertificateAndKey>,
): Promise<CertificateAndKey> {
  if (dir === undefined) return make();
  const [certFile, keyFile] = [join(dir, 'pki', `${name}.crt`), join(dir, 'pki', `${name}.key`)];
  const stored = await load(certFile, keyFile);
  if (stored !== undefined && isGood(stored)) return stored;
  const made = await make();
  // A crash in between leaves a pair that does not match, which `load` takes for none.
  await writeAtomically(keyFile, encodePrivateKey(made.key));
  await writeAtomically(certFile, encodeCertificates(made.chain));
  return made;
}

async function load(certFile: string, keyFile: string): Promise<CertificateAndKey | undefined> {
  const [cert, key] = await Promise.all([readIfThere(certFile), readIfThere(keyFile)]);
  if (cert === undefined || key === undefined) return undefined;
  try {
    return loadCertificateAndKey(cert, key);
  } catch {
    return undefined;
  }
}

async function keepKey({ dir, keys }: IdentityOptions): Promise<KeyObject> {
  const file = dir === undefined ? undefined : join(dir, 'pki', 'service-account.key');
  const stored = file === undefined ? undefined : await readIfThere(file);
  if (stored !== undefined) return readPrivateKey(stored);
  const key = await keys.generate('P-256');
  if (file !== undefined) await writeAtomically(file, encodePrivateKey(key));
  return key;
}
