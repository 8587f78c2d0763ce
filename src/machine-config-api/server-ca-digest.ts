import { createHash } from 'node:crypto';

/** The value of `rotunda.dev/server-ca-digest` for a bundle as it stands in `kubeconfig-data`: SHA-256 in hex. */
export function serverCaDigest(bundle: Uint8Array): string {
  return createHash('sha256').update(bundle).digest('hex');
}
