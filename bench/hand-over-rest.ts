/**
 * What do receipts cost while nothing changes? Requests to the API of a local cluster (three control-plane nodes, two workers, days of 24
 * hours) in some minutes at rest, after every signer has been handed over once: by receipts, and for comparison by the clock. Counted is
 * everything that operators, agents and nodes ask, in this process or over HTTPS. `npm run bench -- hand-over-rest 10` watches ten minutes
 * of each instead of five.
 */
import diagnostics from 'node:diagnostics_channel';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http2';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { NOT_AFTER } from '../src/certrotation/annotations.ts';
import { annotationsOf, loadSecret } from '../src/certrotation/secret.ts';
import { SHOWN } from '../src/hand-over/names.ts';
import type { HandOverMode } from '../src/hand-over/sync.ts';
import type { Kube } from '../src/kube/port.ts';
import { type Resource, SECRETS } from '../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS, signersOf } from '../src/kube-apiserver/chains.ts';
import { CLUSTER, KUBE_API_SERVERS } from '../src/kube-apiserver/resources.ts';
import { startLocalCluster } from '../src/local/cluster.ts';
import { type ClusterApi, embeddedApi } from '../src/local/cluster-api.ts';
import { caDigest } from '../src/trust/receipts.ts';

const MINUTES = 5;
const MINUTE_MS = 60_000;
const LOOK_MS = 1000;
/** What follows from the last change is over by then, the resyncs of a minute among it. */
const SETTLE_MS = 90_000;
const CALLS = ['get', 'list', 'watch', 'create', 'update', 'updateStatus', 'patch', 'delete', 'evict'] as const;
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

export async function bench([minutes = String(MINUTES)]: string[] = []): Promise<void> {
  const watchedMinutes = Number(minutes);
  if (!(watchedMinutes >= 1)) throw new RangeError(`expected minutes, found "${minutes}"`);
  const [clock, receipts] = [await atRest('clock', watchedMinutes), await atRest('receipts', watchedMinutes)];
  const perMinute = (count = 0) => (count / watchedMinutes).toFixed(1).padStart(10);
  const row = (what: string, of: (counts: Counts) => number) =>
    console.log(`${perMinute(of(clock.counts))}${perMinute(of(receipts.counts))}  ${what}`);
  console.log(`\nrequests a minute, in ${minutes} minutes at rest (load ${clock.load} and ${receipts.load})`);
  console.log(`${'clock'.padStart(10)}${'receipts'.padStart(10)}`);
  row('all', counts => sumOf(counts, () => true));
  row('writes', counts => sumOf(counts, what => !/^(get|list|watch) /.test(what)));
  const kinds = [...new Set([...clock.counts.keys(), ...receipts.counts.keys()])];
  const most = (what: string) => Math.max(clock.counts.get(what) ?? 0, receipts.counts.get(what) ?? 0);
  for (const what of kinds.toSorted((one, other) => most(other) - most(one)))
    if (most(what) >= watchedMinutes) row(what, counts => counts.get(what) ?? 0);
}

type Counts = ReadonlyMap<string, number>;

function sumOf(counts: Counts, isCounted: (what: string) => boolean): number {
  return [...counts].reduce((sum, [what, count]) => sum + (isCounted(what) ? count : 0), 0);
}

async function atRest(mode: HandOverMode, minutes: number) {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-bench-'));
  const counter = new RequestCounter();
  const cluster = await startLocalCluster({
    dir,
    controlPlane: 3,
    workers: 2,
    keyAlgorithm: 'P-256',
    handOver: mode,
    programs: { useRealBinaries: ['etcd'] },
    api: async (at, log) => counter.counting(await embeddedApi({ dir: at, port: 0, podLogs: undefined, log })),
  });
  try {
    await cluster.ready();
    if (mode === 'receipts') await handEverythingOver(counter.uncounted);
    await pause(SETTLE_MS);
    counter.start();
    await pause(minutes * MINUTE_MS);
    return { counts: new Map(counter.stop()), load: loadavg()[0]?.toFixed(1) };
  } finally {
    counter.stop();
    await cluster.close();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Each signer once, until everybody has been seen to show what the new one has signed. */
async function handEverythingOver(kube: Kube): Promise<void> {
  const signers = signersOf(KUBE_APISERVER_CHAINS).map(({ signer: { namespace, name } }) => ({ namespace, name }));
  const digests = new Map<string, string>();
  const digestOf = async (key: (typeof signers)[number]) => {
    const secret = await kube.get(SECRETS, key);
    const [certificate] = loadSecret(secret).chain;
    return { digest: certificate === undefined ? '' : caDigest(certificate), shown: annotationsOf(secret)[SHOWN] };
  };
  for (const key of signers) {
    digests.set(key.name, (await digestOf(key)).digest);
    const body = { metadata: { annotations: { [NOT_AFTER]: 'force-regeneration' } } };
    await kube.patch(SECRETS, key, { type: 'merge', body });
  }
  const isDone = async (key: (typeof signers)[number]) => {
    const { digest, shown } = await digestOf(key);
    return digest !== digests.get(key.name) && shown === digest;
  };
  const isRolledOut = async () => {
    const { status } = await kube.get(KUBE_API_SERVERS, CLUSTER);
    return status?.nodeStatuses?.every(({ currentRevision }) => currentRevision === status.latestAvailableRevision);
  };
  while (!(await Promise.all(signers.map(isDone))).every(Boolean) || !(await isRolledOut())) await pause(LOOK_MS);
}

/** Counts what is asked of an API by verb and resource. */
class RequestCounter {
  readonly #counts = new Map<string, number>();
  #isCounting = false;
  #uncounted: Kube | undefined;
  /** Clients of a cluster speak HTTP/2 or HTTP/1.1. */
  readonly #channels: readonly (readonly [name: string, listener: (message: unknown) => void])[] = [
    [
      'http.server.request.start',
      message => {
        const { method, url } = (message as { readonly request: IncomingMessage }).request;
        this.#overHttps(method, url);
      },
    ],
    [
      'http2.server.stream.start',
      message => {
        const { ':method': method, ':path': path } = (message as { readonly headers: IncomingHttpHeaders }).headers;
        this.#overHttps(method, path);
      },
    ],
  ];

  /** For whoever measures. */
  get uncounted(): Kube {
    if (this.#uncounted === undefined) throw new Error('there is no API yet');
    return this.#uncounted;
  }

  counting(api: ClusterApi): ClusterApi {
    this.#uncounted = api.kube;
    return { ...api, kube: this.#around(api.kube), as: async identity => this.#around(await api.as(identity)) };
  }

  start(): void {
    this.#counts.clear();
    this.#isCounting = true;
    for (const [name, listener] of this.#channels) diagnostics.subscribe(name, listener);
  }

  stop(): ReadonlyMap<string, number> {
    this.#isCounting = false;
    for (const [name, listener] of this.#channels) diagnostics.unsubscribe(name, listener);
    return this.#counts;
  }

  #around(kube: Kube): Kube {
    const count = (verb: string, { plural }: Resource) => this.#count(`${verb} ${plural}`);
    const around =
      (verb: (typeof CALLS)[number]) =>
      (first: Resource, ...rest: unknown[]) => {
        // `evict` has a pod in that place.
        count(verb, verb === 'evict' ? ({ plural: 'pods' } as Resource) : first);
        return (kube[verb] as (...args: unknown[]) => unknown).call(kube, first, ...rest);
      };
    return Object.fromEntries(CALLS.map(verb => [verb, around(verb)])) as unknown as Kube;
  }

  #overHttps(method = '', url = ''): void {
    const [path = ''] = url.split('?');
    if (/^\/(api|apis)\//.test(path)) this.#count(`${verbOf(method, url)} ${resourceIn(path)} (over HTTPS)`);
  }

  #count(what: string): void {
    if (this.#isCounting) this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }
}

function verbOf(method: string, url: string): string {
  if (method === 'GET') return /[?&]watch=(true|1)/.test(url) ? 'watch' : 'get';
  return { PUT: 'update', POST: 'create', PATCH: 'patch', DELETE: 'delete' }[method] ?? method.toLowerCase();
}

function resourceIn(path: string): string {
  const parts = path.split('/').slice(path.startsWith('/apis/') ? 4 : 3);
  return (parts[0] === 'namespaces' && parts.length > 2 ? parts[2] : parts[0]) ?? '';
}
