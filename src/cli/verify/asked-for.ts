import { askForAuthorities } from '../../hand-over/ask.ts';
import { seconds } from '../../kube/duration.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { parseName } from '../../pki/name.ts';
import type { Refusal } from '../../trust/edge-counter.ts';
import type { Route } from '../../trust/prober.ts';
import { placeOf } from '../certificates/served.ts';

const TIMEOUT_MS = seconds(5);
const MOST_NAMED = 3;

/**
 * Servers that would refuse a certificate of these CAs: they say over TLS whose certificates they take (spec 90, 3), and these are not among
 * them. Needs no key. Who does not say is no refusal.
 */
export async function refusalsOf(
  authorities: readonly Certificate[],
  routes: readonly Route[],
  timeoutMs = TIMEOUT_MS,
): Promise<Refusal[]> {
  const found = await Promise.all(
    routes.map(async ({ from, host, port, serverName }): Promise<Refusal[]> => {
      const answer = await askForAuthorities({ host, port, serverName, timeoutMs });
      if (answer.kind !== 'loaded') return [];
      if (authorities.some(({ subject }) => answer.authorities.some(name => name.equals(subject.der)))) return [];
      const asked = answer.authorities.slice(0, MOST_NAMED).map(nameText).join(', ');
      const ours = authorities.map(({ subject }) => JSON.stringify(subject.commonName)).join(', ');
      const at = formatRfc3339(new Date());
      const reason = `it takes certificates of ${asked}, and none of ${ours}`;
      return [{ by: 'server', reason, from, to: placeOf({ host, port }), count: 1, firstAt: at, lastAt: at }];
    }),
  );
  return found.flat();
}

function nameText(der: Buffer): string {
  try {
    return JSON.stringify(parseName(der, 'name').commonName);
  } catch {
    return 'somebody whose name cannot be read';
  }
}
