import { setTimeout } from 'node:timers/promises';

const ATTEMPTS = 4;
const PAUSE_MS = 5000;
/** As Go and package clients say it: nobody was reached, or what came was not all. */
const TROUBLE =
  /dial tcp|no such host|i\/o timeout|connection refused|connection reset|proxyconnect|module lookup disabled|unexpected EOF|TLS handshake|stream error|: 5\d\d |Client\.Timeout/;

/** Whether something failed because what it needed could not be fetched. */
export function isNetworkTrouble(error: unknown): boolean {
  return TROUBLE.test((error as Error).message);
}

/** Does something that fetches what it needs, and does it again where that failed: what one attempt has fetched stays. */
export async function despiteNetworkTrouble<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !isNetworkTrouble(error)) throw error;
      await setTimeout(PAUSE_MS);
    }
  }
}
