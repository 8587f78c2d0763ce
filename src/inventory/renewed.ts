import { chainOfPreviousSigner } from './known-chains.ts';
import type { CertificateItem } from './model.ts';

/** Nobody shows it any more, and nobody needs another one. */
export function isKeptAside({ metadata }: CertificateItem): boolean {
  return chainOfPreviousSigner({ metadata }) !== undefined;
}

/** Somebody makes the next one without being asked. */
export function isRenewedByItself({ seen, next }: CertificateItem): boolean {
  return seen === undefined ? next !== undefined : seen.renewal === 'kubelet' || seen.renewal === 'rotunda';
}

export function nameOf({ metadata: { namespace, name } }: CertificateItem): string {
  return namespace === undefined ? name : `secret/${namespace}/${name}`;
}
