import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { issueClient, issueIntermediate, issuePeer, issueServing, issueSigner } from '../../src/pki/issue.ts';
import { type KeyAlgorithm, systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';

/** What the other implementations are asked about: every kind of certificate, for every algorithm. */

export const ALGORITHMS: readonly KeyAlgorithm[] = ['RSA-2048', 'RSA-3072', 'RSA-4096', 'P-256', 'P-384', 'Ed25519'];

export const KINDS = ['signer', 'intermediate', 'serving', 'client', 'peer'] as const;

export type Kind = (typeof KINDS)[number];

export type Issued = Record<Kind, CertificateAndKey>;

export const USER = { name: 'system:node:worker_0', uid: '42', groups: ['system:nodes', 'a', 'ünïcode', 'b@c'] };

export const HOSTNAMES: Record<'serving' | 'peer', readonly string[]> = {
  serving: ['localhost', '127.0.0.1', '::1', '*.apps.example.com', '2001:DB8:0:0:0::A', 'etcd_0.example'],
  peer: ['localhost', '10.0.0.1', '::ffff:192.0.2.1'],
};

/** A signer, an intermediate signed by it, and leaves signed by the intermediate; all keys of one algorithm. */
export async function issueAll(algorithm: KeyAlgorithm, now: Date): Promise<Issued> {
  const options = { keys: systemKeys, now, algorithm };
  const seconds = Math.floor(now.getTime() / 1000);
  const signer = await issueSigner({
    ...options,
    commonName: `openshift-test_signer@${seconds}`,
    lifetimeMs: days(3650),
  });
  const commonName = `inner_@${seconds}`;
  const intermediate = await issueIntermediate({ ...options, signer, commonName, lifetimeMs: days(365) });
  const leaf = { ...options, signer: intermediate, lifetimeMs: days(730) };
  const [serving, client, peer] = await Promise.all([
    issueServing({ ...leaf, hostnames: HOSTNAMES.serving }),
    issueClient({ ...leaf, user: USER }),
    issuePeer({ ...leaf, hostnames: HOSTNAMES.peer }),
  ]);
  return { signer, intermediate, serving, client, peer };
}

const days = (count: number): number => count * 24 * 3600 * 1000;

/** A pair as PEM: the certificate alone, the whole chain, the key. */
export function pemOf({ chain, key }: CertificateAndKey): { cert: string; chain: string; key: string } {
  return { cert: encodeCertificates(chain.slice(0, 1)), chain: encodeCertificates(chain), key: encodePrivateKey(key) };
}
