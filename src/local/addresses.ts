import { createHash } from 'node:crypto';
import { resolve } from 'node:path';

/**
 * An address of its own for each node of a cluster, so that all of them can listen on the same ports. Linux takes everything in
 * 127.0.0.0/8 as its own; two clusters on one machine are told apart by their directories. Elsewhere there is only one address.
 */
export function nodeAddress(
  clusterDirectory: string,
  index: number,
  platform: NodeJS.Platform = process.platform,
): string {
  if (platform !== 'linux') return '127.0.0.1';
  if (!Number.isInteger(index) || index < 0 || index > LAST_INDEX) {
    throw new RangeError(`expected the number of a node from 0 to ${LAST_INDEX}, found ${index}`);
  }
  const digest = createHash('sha256').update(resolve(clusterDirectory)).digest();
  // 127.0 and 127.1 are left to others: resolvers and distributions use them.
  return `127.${2 + ((digest[0] as number) % 250)}.${digest[1]}.${10 + index}`;
}

const LAST_INDEX = 200;
