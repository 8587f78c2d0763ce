import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { seconds } from '../../kube/duration.ts';
import { closeAtOnce, listenOn } from '../../kube/listen.ts';

export interface HealthEndpoint {
  readonly url: string;
  stop(): Promise<void>;
}

const MOST_CONNECTIONS = 20;
const REQUEST_LIMIT_MS = seconds(10);

/**
 * `/health` for the liveness probe (spec 60, 13.4): an empty 200 as long as the process turns. It is there from the start and says
 * nothing about an update, because a long drain is no reason to kill the agent (D-21).
 */
export async function startHealthEndpoint({ host, port }: { host: string; port: number }): Promise<HealthEndpoint> {
  const server = createServer(
    { requestTimeout: REQUEST_LIMIT_MS, headersTimeout: REQUEST_LIMIT_MS },
    (asked, answer) => {
      asked.resume();
      const [pathname] = (asked.url ?? '/').split('?', 1);
      const isRead = asked.method === 'GET' || asked.method === 'HEAD';
      if (!isRead) answer.setHeader('Allow', 'GET, HEAD');
      answer.writeHead(isRead ? (pathname === '/health' ? 200 : 404) : 405, { 'Content-Length': 0 }).end();
    },
  );
  server.maxConnections = MOST_CONNECTIONS;
  await listenOn(server, port, host);
  const { address, family, port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}/health`,
    stop: () => closeAtOnce(server),
  };
}
