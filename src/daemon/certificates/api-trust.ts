import { seconds } from '../../kube/duration.ts';
import type { ServerAddress } from '../../kube/server-address.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import type { HandshakeOutcome, HandshakeRequest } from '../../trust/handshake.ts';

export type ShakeHands = (request: HandshakeRequest) => Promise<HandshakeOutcome>;

const TIMEOUT_MS = seconds(5);
/** CAs that are tried one by one; there are four signers of API servers. */
const MOST_TRIED = 16;

/**
 * Which of the CAs that are to leave a kubeconfig have to stay: a CA goes when the API server's certificate has been verified without
 * it, so a node never gives up the one that it reaches the API with (spec 90, HO-8). That nobody answers is no reason to give one up.
 */
export async function stillNeeded(
  endpoint: ServerAddress | undefined,
  wanted: readonly Certificate[],
  leaving: readonly Certificate[],
  shakeHands: ShakeHands,
): Promise<readonly Certificate[]> {
  if (endpoint === undefined || leaving.length === 0) return [];
  const verdict = async (certificates: readonly Certificate[]) => {
    const outcome = await shakeHands({ ...endpoint, ca: encodeCertificates(certificates), timeoutMs: TIMEOUT_MS });
    if (outcome.kind === 'accepted') return 'verified';
    return outcome.kind === 'refused' && outcome.by === 'client' ? 'not verified' : 'not known';
  };
  const withoutThem = await verdict(wanted);
  if (withoutThem === 'verified') return [];
  if (withoutThem === 'not known') return leaving;
  const needed = leaving.slice(MOST_TRIED);
  for (const certificate of leaving.slice(0, MOST_TRIED)) {
    if ((await verdict([certificate])) !== 'not verified') needed.push(certificate);
  }
  return needed;
}
