import type { Command } from 'commander';
import { CLUSTER_KEY_ALGORITHMS, clusterKeyAlgorithm, type KeyAlgorithm } from '../pki/keys.ts';
import { UsageError } from './usage-error.ts';

/** What a cluster gets that may be handed to OpenShift 4.16 one day: its operators sign with RSA only. */
export const HAND_BACK_ALGORITHM: KeyAlgorithm = 'RSA-2048';
/** What a cluster gets that is only for trying: a start needs dozens of keys, and RSA takes longer to make. */
export const TRIAL_ALGORITHM: KeyAlgorithm = 'P-256';

/** `--key-algorithm`, without a default: who reads it says what is meant by saying nothing. */
export function withKeyAlgorithmFlag(command: Command, otherwise: string = HAND_BACK_ALGORITHM): Command {
  return command.option(
    '--key-algorithm <name>',
    `keys of certificates made from now on: ${CLUSTER_KEY_ALGORITHMS.join(', ')}; OpenShift 4.16 signs with RSA only (default: ${otherwise})`,
  );
}

export function keyAlgorithmFrom(text: string | undefined, otherwise: KeyAlgorithm): KeyAlgorithm {
  if (text === undefined) return otherwise;
  const found = clusterKeyAlgorithm(text);
  if (found !== undefined) return found;
  throw new UsageError(`--key-algorithm must be one of ${CLUSTER_KEY_ALGORITHMS.join(', ')}, found "${text}"`);
}
