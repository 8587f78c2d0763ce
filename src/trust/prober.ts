import { type Clock, sleep, systemClock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { isTransient } from '../kube/error.ts';
import { type Artefact, artefactOf, type ReadArtefact } from './artefact.ts';
import { type EdgeCounter, type EdgeReport, newEdgeCounter } from './edge-counter.ts';
import type { Edge, Side, TrustGraph } from './graph.ts';
import { type HandshakeOutcome, shakeHands } from './handshake.ts';
import { bundleIn, type Pair, pairIn, type Texts } from './material.ts';

/** One way on which an edge is really travelled: a client at a place, a server at an address. */
export interface Route {
  /** The name of a node, or `anywhere`. */
  readonly from: string;
  readonly host: string;
  readonly port: number;
  /** Where the graph does not know the name of the server. */
  readonly serverName?: string | undefined;
}

export interface ProberOptions {
  readonly graph: TrustGraph;
  /** The ways on which an edge is travelled now; a text says why it cannot be. */
  routes(edge: Edge): readonly Route[] | string;
  readonly read: ReadArtefact;
  /** Between the end of one round over all edges and the start of the next. */
  readonly pauseMs?: number | undefined;
  readonly timeoutMs?: number | undefined;
  /** Of one edge; a cluster may have more nodes than one round needs to visit. */
  readonly mostRoutes?: number | undefined;
  readonly clock?: Clock | undefined;
}

export interface ProberSnapshot {
  /** Completed rounds over all edges. */
  readonly rounds: number;
  readonly edges: readonly EdgeReport[];
}

const PAUSE_MS = seconds(1);
const TIMEOUT_MS = seconds(5);
/** Connections that are made at the same time. */
const MOST_AT_ONCE = 4;
/** A pair may be in the middle of being written; who has none yet looks again. */
const READ_ATTEMPTS = 3;
const MOST_ROUTES = 20;

/**
 * Makes real TLS connections over every edge of the trust graph, with what both sides really have, again and again, and counts.
 * It is a client like the real one: what cannot be read or used leaves the old in place, as a process does that reads a pair in
 * the middle of being written.
 */
export class Prober {
  readonly #options: ProberOptions;
  readonly #clock: Clock;
  readonly #counters: ReadonlyMap<string, EdgeCounter>;
  readonly #held = new Map<string, Held<unknown>>();
  #rounds = 0;
  #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: ProberOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#counters = new Map(options.graph.edges.map(({ name }) => [name, newEdgeCounter(name)]));
  }

  /** Goes over all edges until it is stopped. */
  start(): void {
    if (this.#running !== undefined) return;
    this.#stopping = new AbortController();
    this.#running = this.#run(this.#stopping.signal);
  }

  /** Resolves when no connection is open any more. The counters stay. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#running = undefined;
  }

  /** Goes over every edge once. */
  async probe(signal?: AbortSignal): Promise<void> {
    const ways = this.#options.graph.edges.flatMap(edge => this.#waysOf(edge));
    await Promise.all(
      Array.from({ length: MOST_AT_ONCE }, async () => {
        for (let way = ways.shift(); way !== undefined; way = ways.shift()) {
          if (signal?.aborted) return;
          const { edge, route } = way;
          const outcome = await this.#travel(edge, route);
          this.#counters.get(edge.name)?.count(outcome, route, this.#clock.now());
        }
      }),
    );
    if (signal?.aborted !== true) this.#rounds++;
  }

  snapshot(): ProberSnapshot {
    return { rounds: this.#rounds, edges: [...this.#counters.values()].map(counter => counter.report()) };
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.probe(signal);
      await sleep(this.#clock, this.#options.pauseMs ?? PAUSE_MS, signal).catch(() => {});
    }
  }

  #waysOf(edge: Edge): { edge: Edge; route: Route }[] {
    const routes = this.#options.routes(edge);
    const counter = this.#counters.get(edge.name);
    if (typeof routes === 'string') counter?.skip(routes);
    else counter?.skip(routes.length === 0 ? 'nobody travels it' : undefined);
    const { mostRoutes = MOST_ROUTES } = this.#options;
    return typeof routes === 'string' ? [] : routes.slice(0, mostRoutes).map(route => ({ edge, route }));
  }

  async #travel(edge: Edge, route: Route): Promise<HandshakeOutcome> {
    const { client } = edge;
    try {
      const pair =
        client.presents === undefined || client.presents === 'token'
          ? undefined
          : await this.#holding(client, client.presents, route.from, pairIn);
      const ca =
        client.verifiesWith === undefined
          ? undefined
          : await this.#holding(client, client.verifiesWith, route.from, bundleIn);
      const { host, port } = route;
      const timeoutMs = this.#options.timeoutMs ?? TIMEOUT_MS;
      const request = { host, port, serverName: serverNameOf(edge, route), pair, ca, timeoutMs };
      const outcome = await shakeHands(request);
      if (outcome.kind !== 'cut-off') return outcome;
      // A server that was stopped in the middle is gone by now; one that cuts this client off does so again.
      const again = await shakeHands(request);
      return again.kind === 'cut-off' ? { kind: 'refused', by: 'server', reason: again.reason } : again;
    } catch (error) {
      const reason = (error as Error).message;
      // Who cannot read what it holds because the API is away says nothing about trust.
      return isTransient(error) ? { kind: 'unreachable', reason } : { kind: 'refused', by: 'client', reason };
    }
  }

  async #holding<T extends Pair | string>(
    side: Side,
    held: Parameters<typeof artefactOf>[2],
    place: string,
    parse: (texts: Texts) => T,
  ): Promise<T> {
    const artefact = artefactOf(this.#options.graph, side, held);
    const key = JSON.stringify([parse.name, side.process, place, artefact.object, artefact.files]);
    const last = this.#held.get(key) as Held<T> | undefined;
    for (let attempt = 1; ; attempt++) {
      try {
        const texts = await this.#options.read(artefact, place);
        const content = JSON.stringify(texts);
        if (last !== undefined && last.content === content) return last.material;
        if (texts === undefined) throw new Error(`${nameOf(artefact)} is not there`);
        const material = parse(texts);
        this.#held.set(key, { content, material });
        return material;
      } catch (error) {
        if (last !== undefined) return last.material;
        if (attempt === READ_ATTEMPTS) throw error;
      }
    }
  }
}

interface Held<T> {
  readonly content: string;
  readonly material: T;
}

function serverNameOf({ name, server }: Edge, route: Route): string {
  const { url, serverName } = server.endpoint;
  const [, host = ''] = /^https:\/\/(.+):\d+$/.exec(url) ?? [];
  const found = serverName ?? route.serverName ?? (host.includes('<') ? undefined : host);
  if (found === undefined) throw new Error(`${name}: the name of the server at ${url} is not known`);
  return found;
}

function nameOf({ object, files }: Artefact): string {
  return object === undefined ? files.join(', ') : `${object.kind} ${object.namespace}/${object.name}`;
}
