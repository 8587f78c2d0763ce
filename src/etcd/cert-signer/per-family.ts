import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import type { Family } from '../profile.ts';

export type PerFamily<T> = Record<Family, T>;

export async function perFamily<T>(work: (family: Family) => Promise<T>): Promise<PerFamily<T>> {
  return { server: await work('server'), metrics: await work('metrics') };
}

export function certificateOf(pair: CertificateAndKey): Certificate {
  const [certificate] = pair.chain;
  if (certificate === undefined) throw new RangeError('a loaded signer has a certificate');
  return certificate;
}
