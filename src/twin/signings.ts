import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { dataText, TLS_CERT } from '../certrotation/secret.ts';
import { days } from '../kube/duration.ts';
import type { Certificate } from '../pki/certificate.ts';
import { certificatesIn } from '../pki/pem.ts';
import type { Write } from './api.ts';

/** How a signer came to sign. */
export interface FirstSigning {
  readonly atMs: number;
  /** What was signed before, and what it was replaced for; undefined: there was nothing that was good. */
  readonly before: Certificate | undefined;
  /** The signer that signed until then, as far as it was still good. */
  readonly signerBefore: Certificate | undefined;
}

/** Remembers when each signer signed first, and what would have gone on without it: facts that are seen in the writes. */
export class Signings {
  readonly #first = new Map<string, FirstSigning>();
  /** By Secret, what it held when it held something. */
  readonly #signers = new Map<string, Certificate>();

  /** Told of every write, before anybody hears of it. */
  saw({ resource, before, after }: Write, nowMs: number): void {
    if (resource.kind !== 'Secret' || after === undefined) return;
    const [leaf] = certificatesOf(after);
    if (leaf === undefined) return;
    const [old] = certificatesOf(before);
    if (leaf.isCA) {
      if (old !== undefined && !old.der.equals(leaf.der)) this.#signers.set(leaf.subject.commonName, old);
      return;
    }
    const issuer = leaf.issuer.commonName;
    if (this.#first.has(issuer)) return;
    const signerBefore = this.#signers.get(issuer);
    const stillGood = (one: Certificate | undefined) =>
      one !== undefined && one.notAfter.getTime() > nowMs ? one : undefined;
    this.#first.set(issuer, { atMs: nowMs, before: stillGood(old), signerBefore: stillGood(signerBefore) });
  }

  firstOf(issuer: string): FirstSigning | undefined {
    return this.#first.get(issuer);
  }
}

/** HO-7 waits until the last fifth of a life, or for three times as long as a hand-over takes; nothing takes longer than this. */
const LONGEST_PATIENCE_MS = days(15);

/** Whether what was signed before had so little left that waiting any longer would have harmed everybody (HO-7). */
export function wasTheLastMoment({ atMs, before, signerBefore }: FirstSigning): boolean {
  const ends = [before, signerBefore].filter(one => one !== undefined);
  if (before === undefined || ends.length === 0) return true;
  return ends.some(({ notBefore, notAfter }) => {
    const lastFifthMs = (notAfter.getTime() - notBefore.getTime()) / 5;
    return atMs >= notAfter.getTime() - Math.min(lastFifthMs, LONGEST_PATIENCE_MS);
  });
}

function certificatesOf(object: Write['before']): Certificate[] {
  return object === undefined ? [] : certificatesIn(dataText(object as Secret, TLS_CERT));
}
