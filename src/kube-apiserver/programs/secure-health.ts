import { createServer } from 'node:https';
import type { Registry } from '@prometheus-io/client';
import type { Clock } from '../../kube/clock.ts';
import { days, seconds } from '../../kube/duration.ts';
import { closeAtOnce, listenOn } from '../../kube/listen.ts';
import { issueServing, issueSigner } from '../../pki/issue.ts';
import type { Keys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';

export interface SecureHealthOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  readonly keys: Keys;
  readonly registry?: Registry | undefined;
}

/** Nobody checks it, so it may last as long as the container. */
const CERTIFICATE_LIFETIME_MS = days(3650);
const REQUEST_LIMIT_MS = seconds(10);
const MOST_CONNECTIONS = 100;

/**
 * `/healthz` and `/metrics` over TLS with a certificate made for the occasion: the kubelet does not verify what its probes meet, and
 * a certificate of the cluster would make the answer depend on what is being checked.
 */
export async function startSecureHealth(
  options: SecureHealthOptions,
): Promise<{ port: number; stop(): Promise<void> }> {
  const { host, port, clock, keys, registry } = options;
  const common = { keys, now: clock.now(), lifetimeMs: CERTIFICATE_LIFETIME_MS, algorithm: 'P-256' } as const;
  const signer = await issueSigner({
    ...common,
    commonName: `check-endpoints@${Math.floor(clock.now().getTime() / 1000)}`,
  });
  const serving = await issueServing({ ...common, signer, hostnames: ['localhost', '127.0.0.1'] });
  const server = createServer(
    {
      cert: encodeCertificates(serving.chain),
      key: encodePrivateKey(serving.key),
      requestTimeout: REQUEST_LIMIT_MS,
      headersTimeout: REQUEST_LIMIT_MS,
    },
    (request, response) => {
      request.resume();
      const [pathname] = (request.url ?? '/').split('?', 1);
      response.setHeader('X-Content-Type-Options', 'nosniff');
      if (pathname === '/metrics' && registry !== undefined) {
        registry.metrics().then(
          text => response.writeHead(200, { 'Content-Type': registry.contentType }).end(text),
          () => response.writeHead(500).end(),
        );
        return;
      }
      const isHealth = pathname === '/healthz';
      response.writeHead(isHealth ? 200 : 404, { 'Content-Type': 'text/plain; charset=utf-8' });
      response.end(isHealth ? 'ok' : 'not found\n');
    },
  );
  server.maxConnections = MOST_CONNECTIONS;
  const taken = await listenOn(server, port, host);
  return {
    port: taken,
    stop: () => closeAtOnce(server),
  };
}
