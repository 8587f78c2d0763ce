import { errorText } from '../../controller/aggregate-error.ts';
import { redactedText } from '../../controller/redact.ts';

/** What the writer keeps; each part is looked at whatever became of the others (D-1). */
export type CertificatePart = 'kubelet-ca' | 'cloud-ca' | 'registry-ca' | 'server-ca' | 'pull-secret';

export type ProblemCode =
  /** The bundle has no certificate; the file that is there was kept. */
  | 'EmptyTrustBundle'
  /** A part of a bundle cannot be read as a certificate and was left out. */
  | 'MalformedCertificate'
  /** The registry of a CA cannot be the name of a directory. */
  | 'InvalidRegistryName'
  | 'InvalidPullSecret'
  | 'InvalidKubeconfig'
  /** A rotation is asked for and its bundle is not there. */
  | 'ServerCANotFound'
  /** The host refused something. */
  | 'CertificateSyncFailed';

/** Something that keeps a part from being as it should, for an event and the node's state. Never holds contents of files. */
export interface CertificateProblem {
  readonly part: CertificatePart;
  /** Also the reason of the event. */
  readonly code: ProblemCode;
  readonly message: string;
  /** Whether trying again may help; otherwise only other input does. */
  readonly isPassing: boolean;
}

/** Input that cannot be carried out as it is; thrown inside a part. */
export class InputError extends Error {
  override readonly name = 'InputError';
  readonly code: ProblemCode;

  constructor(code: ProblemCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Runs one part and turns whatever it throws into a problem, so that the next part has its turn. */
export async function attempt<T>(
  part: CertificatePart,
  problems: CertificateProblem[],
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    problems.push(problemOf(part, error));
    return undefined;
  }
}

function problemOf(part: CertificatePart, error: unknown): CertificateProblem {
  const message = redactedText(errorText(error));
  if (error instanceof InputError) return { part, code: error.code, message, isPassing: false };
  return { part, code: 'CertificateSyncFailed', message, isPassing: true };
}
