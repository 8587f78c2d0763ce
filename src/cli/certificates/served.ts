import { isIP } from 'node:net';
import { seconds } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES } from '../../kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../kube-apiserver/resources.ts';
import type { Certificate } from '../../pki/certificate.ts';
import type { TrustGraph } from '../../trust/graph.ts';
import { chainServed, type ServerPlace } from '../../trust/served.ts';
import { routesFrom } from '../verify/routes.ts';
import type { UsedCertificate } from './in-use.ts';

/** A server on the way to somewhere else does not keep people waiting. */
const LONGEST_ANSWER_MS = seconds(2);
const MOST_AT_ONCE = 64;

export interface AskedServers {
  readonly inUse: readonly UsedCertificate[];
  readonly asked: number;
  /** Servers that showed no certificate: nobody there, or out of reach from here. */
  readonly silent: readonly string[];
}

/**
 * What the servers of the trust graph show at this moment. A process may still serve what the API has replaced long ago, and some
 * certificates are on nodes only, as a kubelet's is (spec 70, 9.6).
 */
export async function certificatesServed(kube: Kube, graph: TrustGraph): Promise<AskedServers> {
  const [{ items: nodes }, infrastructure] = await Promise.all([
    listAll(kube, NODES),
    getIfPresent(kube, INFRASTRUCTURES, CLUSTER),
  ]);
  const routesOf = routesFrom(nodes, infrastructure);
  const routes = graph.edges.map(routesOf).flatMap(found => (typeof found === 'string' ? [] : found));
  return askAll([...new Map(routes.map(route => [placeOf(route), route])).values()]);
}

/** Asks each server for its certificate. */
export async function askAll(routes: readonly ServerPlace[], timeoutMs = LONGEST_ANSWER_MS): Promise<AskedServers> {
  const inUse: UsedCertificate[] = [];
  const silent: string[] = [];
  for (const { server, chain } of await chainsServed(routes, timeoutMs)) {
    const [certificate, ...intermediates] = chain;
    const where = placeOf(server);
    if (certificate === undefined) silent.push(where);
    else inUse.push({ where: `the server ${where}`, certificate, intermediates });
  }
  return { inUse, asked: routes.length, silent };
}

/** What each server shows, in their order, a bounded number of them asked at a time; an empty chain: nothing. */
export async function chainsServed<T extends ServerPlace>(
  servers: readonly T[],
  timeoutMs = LONGEST_ANSWER_MS,
): Promise<{ readonly server: T; readonly chain: readonly Certificate[] }[]> {
  const found: { server: T; chain: readonly Certificate[] }[] = [];
  for (let at = 0; at < servers.length; at += MOST_AT_ONCE) {
    const batch = servers.slice(at, at + MOST_AT_ONCE);
    found.push(
      ...(await Promise.all(batch.map(async server => ({ server, chain: await chainServed(server, timeoutMs) })))),
    );
  }
  return found;
}

/** `<name> at <address>:<port>`, or without the name where it is the address. */
export function placeOf({ host, port, serverName = host }: ServerPlace): string {
  const address = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  return serverName === host ? address : `${serverName} at ${address}`;
}
