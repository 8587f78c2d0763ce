import { seconds } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { LEASES } from '../../kube/resource.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import { encodeCertificates, encodePrivateKey, readPrivateKey } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import { isFields } from '../exchange.ts';
import { KUBE_APISERVER_PORT } from '../names.ts';
import type { Ask, Question } from './ask.ts';
import type { LeafFiles, NodeSight } from './sight.ts';

const LEASE_NAMESPACE = 'kube-node-lease';
/** A kubelet renews every ten seconds. */
const OLDEST_LEASE_MS = seconds(60);
const MOST_MEMBERS = 64;

export interface CheckOptions {
  readonly ask: Ask;
  readonly kube: Kube;
  readonly now: Date;
}

/** What does not work yet on a node whose files and processes are as they are to be; undefined: all does (spec 80, KA-6). */
export async function checkNode(sight: NodeSight, options: CheckOptions): Promise<string | undefined> {
  const checks = sight.role === 'worker' ? [checkKubelet] : [checkApiServer, checkEtcd, checkKubelet];
  for (const check of checks) {
    const problem = await check(sight, options).catch((error: Error) => error.message);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The node's own one is ready, and shows what is on the disk. */
async function checkApiServer(sight: NodeSight, { ask }: CheckOptions): Promise<string | undefined> {
  const flags = sight.pods.get('kube-apiserver')?.manifest.flags;
  const host = flags?.get('advertise-address');
  const ca = sight.signers.get('ca');
  if (flags === undefined || host === undefined || ca === undefined) return undefined;
  const port = flags.get('secure-port') ?? String(KUBE_APISERVER_PORT);
  const url = `https://${host.includes(':') ? `[${host}]` : host}:${port}/readyz`;
  const pair = pairOf(sight.leaves.get('apiserver-kubelet-client'));
  const { status, shown } = await ask({ url, ca: encodeCertificates(ca.cas), pair });
  if (status !== 200) return `kube-apiserver of this node is not ready: /readyz answers ${status}`;
  return notShown(sight, 'apiserver', shown, 'kube-apiserver');
}

/** The own member shows what is on the disk, and every voter is healthy. */
async function checkEtcd(sight: NodeSight, { ask }: CheckOptions): Promise<string | undefined> {
  const flags = sight.pods.get('etcd')?.manifest.flags;
  const ca = sight.signers.get('etcd-ca');
  const client = pairOf(sight.leaves.get('etcd-healthcheck-client')) ?? pairOf(sight.leaves.get('etcd-server'));
  if (flags === undefined || ca === undefined || client === undefined) return undefined;
  const common = { ca: encodeCertificates(ca.cas), pair: client };
  const [own] = urlsIn(flags.get('advertise-client-urls'));
  if (own === undefined) return undefined;
  const health = await memberHealth(ask, own, common);
  if (health.problem !== undefined) return health.problem;
  const wrong = notShown(sight, 'etcd-server', health.shown, 'etcd');
  if (wrong !== undefined) return wrong;
  const [peer] = urlsIn(flags.get('initial-advertise-peer-urls'));
  if (peer !== undefined) {
    const pair = pairOf(sight.leaves.get('etcd-peer')) ?? client;
    const { shown } = await ask({ url: `${peer}/version`, ca: common.ca, pair });
    const wrongPeer = notShown(sight, 'etcd-peer', shown, 'etcd');
    if (wrongPeer !== undefined) return wrongPeer;
  }
  const { status, body } = await ask({ url: `${own}/v3/cluster/member/list`, ...common, body: '{}' });
  const members = status === 200 ? membersIn(body) : undefined;
  if (members === undefined) return `etcd of this node does not list its members: it answers ${status}`;
  for (const { name, urls } of members) {
    const [url] = urls;
    if (url === undefined) return `member ${name} of etcd has not started`;
    const { problem } = await memberHealth(ask, url, common);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** It has spoken to the API since it was started. */
async function checkKubelet(
  { nodeName, kubelet }: NodeSight,
  { kube, now }: CheckOptions,
): Promise<string | undefined> {
  const lease = await getIfPresent(kube, LEASES, { namespace: LEASE_NAMESPACE, name: nodeName });
  const text: unknown = lease?.spec?.renewTime;
  const renewed = typeof text === 'string' ? parseRfc3339(text) : undefined;
  if (renewed === undefined) return 'the kubelet has no lease';
  const at = floorToMs(renewed);
  if (kubelet.startedAt !== undefined && at <= kubelet.startedAt)
    return 'the kubelet has not renewed its lease since it was started';
  return now.getTime() - at.getTime() > OLDEST_LEASE_MS
    ? `the kubelet has not renewed its lease since ${at.toISOString()}`
    : undefined;
}

async function memberHealth(
  ask: Ask,
  url: string,
  common: Pick<Question, 'ca' | 'pair'>,
): Promise<{ readonly shown: string; readonly problem: string | undefined }> {
  const { status, body, shown } = await ask({ url: `${url}/health`, ...common });
  const isHealthy = status === 200 && healthIn(body);
  return {
    shown,
    problem: isHealthy ? undefined : `etcd at ${new URL(url).host} is not healthy: it answers ${status}`,
  };
}

function healthIn(body: string): boolean {
  const answer = parsed(body);
  return isFields(answer) && (answer['health'] === 'true' || answer['health'] === true);
}

/** Those who vote. */
function membersIn(body: string): { readonly name: string; readonly urls: readonly string[] }[] | undefined {
  const answer = parsed(body);
  const members = isFields(answer) ? answer['members'] : undefined;
  if (!Array.isArray(members) || members.length === 0 || members.length > MOST_MEMBERS) return undefined;
  return members.filter(isFields).flatMap(({ name, clientURLs, isLearner }) =>
    isLearner === true
      ? []
      : [
          {
            name: typeof name === 'string' ? name : '',
            urls: Array.isArray(clientURLs) ? urlsIn(clientURLs.join(',')) : [],
          },
        ],
  );
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function urlsIn(list: string | undefined): string[] {
  return (list ?? '')
    .split(',')
    .map(url => url.replace(/\/$/, ''))
    .filter(url => url.startsWith('https://') && URL.canParse(url));
}

function notShown({ leaves }: NodeSight, name: string, shown: string, process: string): string | undefined {
  const leaf = leaves.get(name);
  if (leaf === undefined || caDigest(leaf.certificate) === shown) return undefined;
  return `${process} of this node does not show what is in ${leaf.file.path} yet`;
}

function pairOf(leaf: LeafFiles | undefined): Question['pair'] {
  if (leaf?.keyFile === undefined) return undefined;
  return { cert: encodeCertificates([leaf.certificate]), key: encodePrivateKey(readPrivateKey(leaf.keyFile.text)) };
}
