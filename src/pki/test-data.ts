import { readFileSync } from 'node:fs';
import type { CertificateAndKey } from './authority.ts';
import { type Certificate, parseCertificate } from './certificate.ts';
import { bitString, contextConstructed, element, integer, sequence, time } from './der-write.ts';
import { type IssueOptions, issueClient, issueIntermediate, issuePeer, issueServing, issueSigner } from './issue.ts';
import { type Keys, seededKeys } from './keys.ts';
import { encodeName, type NameAttributes } from './name.ts';
import { readCertificates } from './pem.ts';
import { publicKeyInfoOf, signatureSchemeOf } from './signature.ts';

/** What the tests of this folder share. Not part of the program. */

export const NOW = new Date('2024-01-15T00:00:00Z');

export const DAY_MS = 24 * 3600 * 1000;

export const at = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1000);

interface Vectors {
  readonly fixtures: Record<string, { pem: string } & Record<string, unknown>>;
}

export const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../test/vectors/certrotation-vectors.json', import.meta.url), 'utf8'),
);

/** A real certificate of a 2023 cluster. */
export function fixture(name: string): Certificate {
  return readCertificates(vectors.fixtures[name]!.pem).certificates[0]!;
}

/** What the certificates of most tests are issued with. */
export const ISSUE = { keys: seededKeys('issue'), now: NOW, lifetimeMs: DAY_MS, algorithm: 'P-256' as const };

type Issuance = (signer: CertificateAndKey, changes?: Partial<IssueOptions>) => Promise<CertificateAndKey>;

/** One of each kind; a signer signs itself. */
export const KINDS: Record<string, Issuance> = {
  signer: (_, changes) => issueSigner({ ...ISSUE, commonName: 'ns_name@1705276800', ...changes }),
  intermediate: (signer, changes) =>
    issueIntermediate({ ...ISSUE, signer, commonName: 'inner_@1705276800', ...changes }),
  serving: (signer, changes) =>
    issueServing({ ...ISSUE, signer, hostnames: ['localhost', '127.0.0.1', '::1'], ...changes }),
  client: (signer, changes) =>
    issueClient({ ...ISSUE, signer, user: { name: 'system:admin', groups: ['system:masters'] }, ...changes }),
  peer: (signer, changes) => issuePeer({ ...ISSUE, signer, hostnames: ['etcd-0', '10.0.0.1'], ...changes }),
};

/** The certificate at the head of a chain. */
export const own = ({ chain }: CertificateAndKey): Certificate => chain[0]!;

const options = (keys: Keys) => ({ keys, now: NOW, algorithm: 'P-256' as const });

export function sampleSigner(changes: { keys?: Keys; now?: Date; lifetimeMs?: number; commonName?: string } = {}) {
  const { keys = seededKeys('signer'), ...rest } = changes;
  return issueSigner({ ...options(keys), commonName: 'ns_signer@1705276800', lifetimeMs: 30 * DAY_MS, ...rest });
}

export function sampleServing(signer: CertificateAndKey, hostnames: Iterable<string> = ['localhost', '127.0.0.1']) {
  return issueServing({ ...options(seededKeys('serving')), signer, hostnames, lifetimeMs: DAY_MS });
}

/** Root, two intermediates, leaf: each with the chain above it. */
export async function sampleHierarchy(hostnames: Iterable<string> = ['localhost']) {
  const keys = seededKeys('hierarchy');
  const root = await sampleSigner({ keys, commonName: 'root' });
  const plan = { ...options(keys), lifetimeMs: 20 * DAY_MS };
  const bravo = await issueIntermediate({ ...plan, signer: root, commonName: 'bravo' });
  const delta = await issueIntermediate({ ...plan, signer: bravo, commonName: 'delta' });
  const leaf = await issueServing({ ...plan, signer: delta, hostnames });
  return { root, bravo, delta, leaf };
}

/** The parts of a certificate that our own issuance never makes; each is DER unless it is not. */
export interface Handmade {
  readonly signer?: CertificateAndKey;
  readonly version?: Buffer;
  readonly serial?: Buffer;
  readonly subject?: NameAttributes | Buffer;
  readonly notBefore?: Buffer;
  readonly notAfter?: Buffer;
  readonly publicKeyInfo?: Buffer;
  readonly afterKey?: readonly Buffer[];
  readonly extensions?: readonly Buffer[];
}

/** A validly signed certificate with any oddity in it. */
export async function handmade(parts: Handmade = {}): Promise<CertificateAndKey> {
  const keys = seededKeys(JSON.stringify(parts.subject ?? 'handmade'));
  const key = await keys.generate('P-256');
  const signingKey = parts.signer?.key ?? key;
  const { subject = { commonName: 'handmade' }, signer, extensions = [] } = parts;
  const name = Buffer.isBuffer(subject) ? subject : encodeName(subject);
  const tbs = sequence(
    parts.version ?? element(contextConstructed(0), integer(2)),
    parts.serial ?? integer(1),
    signatureSchemeOf(signingKey).identifier,
    signer?.chain[0]?.subject.der ?? name,
    sequence(parts.notBefore ?? time(at(-60)), parts.notAfter ?? time(at(60))),
    name,
    parts.publicKeyInfo ?? publicKeyInfoOf(key),
    ...(parts.afterKey ?? []),
    ...(extensions.length > 0 ? [element(contextConstructed(3), sequence(...extensions))] : []),
  );
  const signature = bitString(await keys.sign(signingKey, tbs));
  return { chain: [parseCertificate(sequence(tbs, signatureSchemeOf(signingKey).identifier, signature))], key };
}
