import type { HostFiles } from '../../host/port.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { endingInLineFeed, isBlank, readBundle } from './bundle.ts';
import { LARGEST_FILE_BYTES } from './paths.ts';
import type { CertificatePart, CertificateProblem, ProblemCode } from './problem.ts';

export interface CaFileDecision {
  /** The content that is to be on disk; undefined: what is there stays. */
  readonly write?: Buffer;
  readonly problem?: { readonly code: ProblemCode; readonly message: string };
}

/**
 * What a CA file should hold (spec 60, 4.4). A bundle without a certificate never takes the place of one with (D-2), and of a
 * bundle with a broken certificate the others are written: its reader would refuse it as a whole.
 */
export function decideCaFile(
  wanted: Uint8Array,
  current: Uint8Array | undefined,
  isOptional: boolean = false,
): CaFileDecision {
  if (isBlank(wanted))
    return isOptional ? {} : { problem: { code: 'EmptyTrustBundle', message: kept('is empty', current) } };
  const bundle = readBundle(wanted);
  if (bundle.certificates.length === 0 && current !== undefined && holdsCertificate(current)) {
    return { problem: { code: 'EmptyTrustBundle', message: kept('holds no certificate', current) } };
  }
  const isBroken = bundle.malformed > 0 && bundle.certificates.length > 0;
  const content = isBroken ? Buffer.from(encodeCertificates(bundle.certificates)) : endingInLineFeed(wanted);
  const message = `${bundle.malformed} of ${bundle.malformed + bundle.certificates.length} parts of the bundle are no certificates and were left out`;
  return {
    ...(!(current !== undefined && content.equals(current)) && { write: content }),
    ...(isBroken && { problem: { code: 'MalformedCertificate', message } }),
  };
}

/** Brings a CA file into the state that was decided; says whether it was written. */
export async function ensureCaFile(
  files: HostFiles,
  file: { readonly path: string; readonly part: CertificatePart; readonly isOptional?: boolean },
  wanted: Uint8Array,
  problems: CertificateProblem[],
): Promise<boolean> {
  const { path, part, isOptional } = file;
  const { write, problem } = decideCaFile(wanted, await files.read(path, LARGEST_FILE_BYTES), isOptional);
  if (problem !== undefined) {
    problems.push({ part, code: problem.code, message: `${path}: ${problem.message}`, isPassing: false });
  }
  if (write === undefined) return false;
  await files.write(path, write, { takesOver: true });
  return true;
}

function kept(what: string, current: Uint8Array | undefined): string {
  const stays = current === undefined ? 'nothing was written' : 'the file on disk was kept';
  return `the bundle in ControllerConfig ${what}; ${stays}`;
}

function holdsCertificate(bytes: Uint8Array): boolean {
  return readBundle(bytes).certificates.length > 0;
}
