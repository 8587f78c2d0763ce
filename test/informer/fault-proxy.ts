import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Agent, request as requestTls } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Connection } from '../../src/kube/access.ts';
import { below, type Random, shuffledForever } from './seeded.ts';

/**
 * What can happen to a request. `end` is an answer that ends as if it were complete and is not; `compaction` lets the API
 * lose its history while the client is away, so that the API itself answers 410.
 */
export type Fault = Break | Refusal | 'compaction';
type Break = 'reset' | 'close' | 'end' | 'stall';
type Refusal = '500' | '410';

export interface FaultProxyOptions {
  /** The API, with the credentials to use there. Towards the client the proxy is plain HTTP on loopback. */
  readonly api: Connection;
  readonly random: Random;
  readonly faults: readonly Fault[];
  /** Makes the API forget how it came to now. Needed for `compaction`. */
  readonly loseHistory?: (() => Promise<void>) | undefined;
  /** How many of the lists, or pages of one, get a fault. */
  readonly listFaultShare?: number | undefined;
  /** A stalled connection is reset after this long. Absent: the client has to notice by itself. */
  readonly stallLimitMs?: number | undefined;
}

const LIST_FAULT_SHARE = 0.15;
/** How many of the watches get no further than their beginning. */
const WATCH_FAULT_SHARE = 0.25;
/** A watch that begins well gets a fault after at most so many events. */
const MOST_GOOD_EVENTS = 120;
/** Into how many pieces a piece of an answer is cut at most. */
const MOST_PIECES = 3;
const NEWLINE = 10;

/** Stands between a client and the API, and breaks connections in every way there is. */
export class FaultProxy {
  /** Connections of clients that are open. */
  readonly sockets = new Set<Socket>();
  readonly struck = new Map<string, number>();
  /** How often the API itself answered 410, to a list and within a watch. */
  readonly expired = { list: 0, watch: 0 };
  /** Requests that are being answered. */
  open = 0;
  /** Hears of everything that happens here: a request that comes in, a piece that goes out. */
  onStep: () => void = () => {};
  readonly #options: FaultProxyOptions;
  readonly #draw: () => Fault;
  readonly #agent: Agent;
  readonly #server: Server;
  /** Settled, except while the API loses its history. */
  #ready: Promise<unknown> = Promise.resolve();

  private constructor(options: FaultProxyOptions) {
    this.#options = options;
    this.#draw = shuffledForever(options.random, options.faults);
    const { ca, certificate: cert, key } = options.api.tls;
    this.#agent = new Agent({ ca, cert, key, keepAlive: true });
    this.#server = createServer((request, response) => void this.#handle(request, response));
    this.#server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => this.sockets.delete(socket));
    });
  }

  static async start(options: FaultProxyOptions): Promise<FaultProxy> {
    const proxy = new FaultProxy(options);
    await new Promise<void>(resolve => {
      proxy.#server.listen(0, '127.0.0.1', resolve);
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#agent.destroy();
    await new Promise<void>(resolve => {
      this.#server.close(() => resolve());
    });
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.open++;
    response.once('close', () => this.open--);
    this.onStep();
    await this.#ready;
    const { searchParams } = new URL(request.url ?? '/', 'http://api');
    const isWatch = searchParams.has('watch');
    const share = isWatch ? WATCH_FAULT_SHARE : (this.#options.listFaultShare ?? LIST_FAULT_SHARE);
    const fault = this.#options.random() < share ? this.#draw() : undefined;
    if (isWatch && fault === 'compaction') await this.#loseHistory('before a watch');
    if (response.destroyed) return;
    if (isRefusal(fault)) this.#refuse(response, fault);
    else if (isWatch && isBreak(fault)) this.#strike(response, fault, 'before a watch');
    else if (isWatch) this.#forward(request, response, answer => this.#stream(answer, response));
    else this.#forward(request, response, answer => void this.#answer(answer, response, fault));
  }

  #forward(request: IncomingMessage, response: ServerResponse, take: (answer: IncomingMessage) => void): void {
    const { hostname: host, port } = this.#options.api.server;
    const headers = { accept: request.headers.accept ?? 'application/json' };
    const asked = requestTls({ host, port, agent: this.#agent, path: request.url, headers }, answer => {
      answer.on('error', () => {});
      response.writeHead(answer.statusCode ?? 500, { 'content-type': answer.headers['content-type'] });
      take(answer);
    });
    asked.on('error', () => response.destroy());
    response.once('close', () => asked.destroy());
    asked.end();
  }

  /** Sends an answer that is complete, or a part of it. */
  async #answer(answer: IncomingMessage, response: ServerResponse, fault: Fault | undefined): Promise<void> {
    if (answer.statusCode === 410) this.expired.list++;
    const chunks = (await answer.toArray().catch(() => [])) as Buffer[];
    const body = Buffer.concat(chunks);
    if (isBreak(fault)) {
      response.write(body.subarray(0, below(this.#options.random, body.length)));
      this.#strike(response, fault, 'in an answer');
    } else {
      this.#send(response, body);
      response.end();
      // The next page of the list, if there is one, is asked for too late.
      if (fault === 'compaction' && answer.statusCode === 200) void this.#loseHistory('after an answer');
    }
  }

  /** Passes the events of a watch on until its time has come. */
  #stream(answer: IncomingMessage, response: ServerResponse): void {
    response.flushHeaders();
    let goodEvents = 1 + below(this.#options.random, MOST_GOOD_EVENTS);
    answer.on('end', () => response.end());
    answer.on('data', (chunk: Buffer) => {
      this.expired.watch += chunk.includes('{"type":"ERROR"') && chunk.includes('"code":410') ? 1 : 0;
      let [start, end] = [0, 0];
      while (goodEvents > 0 && end < chunk.length) {
        const newline = chunk.indexOf(NEWLINE, end);
        if (newline >= 0) goodEvents--;
        [start, end] = [end, newline < 0 ? chunk.length : newline + 1];
      }
      if (goodEvents > 0) {
        this.#send(response, chunk);
        return;
      }
      answer.removeAllListeners('data').removeAllListeners('end').resume();
      this.#breakStream(response, chunk.subarray(0, start), chunk.subarray(start, end));
    });
  }

  #breakStream(response: ServerResponse, events: Buffer, lastEvent: Buffer): void {
    const { random } = this.#options;
    const fault = this.#draw();
    const isTorn = !isRefusal(fault) && random() < 0.5;
    this.#send(
      response,
      Buffer.concat([events, isTorn ? lastEvent.subarray(0, below(random, lastEvent.length)) : lastEvent]),
    );
    if (isRefusal(fault)) {
      this.#count(`${fault} in a watch`);
      response.end(`${JSON.stringify({ type: 'ERROR', object: statusOf(fault) })}\n`);
      return;
    }
    if (fault === 'compaction') void this.#loseHistory('in a watch');
    this.#strike(response, isBreak(fault) ? fault : 'reset', isTorn ? 'within an event' : 'after an event');
  }

  #strike(response: ServerResponse, fault: Break, where: string): void {
    this.#count(`${fault} ${where}`);
    const { socket } = response;
    const { stallLimitMs } = this.#options;
    if (fault === 'reset') socket?.resetAndDestroy();
    else if (fault === 'close') socket?.destroy();
    else if (fault === 'end') response.end();
    else if (stallLimitMs !== undefined) {
      const timer = setTimeout(() => socket?.resetAndDestroy(), stallLimitMs);
      response.once('close', () => clearTimeout(timer));
    }
  }

  #refuse(response: ServerResponse, fault: Refusal): void {
    this.#count(`${fault} before an answer`);
    response.writeHead(Number(fault), { 'content-type': 'application/json' });
    response.end(JSON.stringify(statusOf(fault)));
  }

  /** Nothing gets through until the history is lost. */
  #loseHistory(where: string): Promise<unknown> {
    this.#count(`compaction ${where}`);
    this.#ready = Promise.all([this.#ready, this.#options.loseHistory?.()]);
    return this.#ready;
  }

  /** In pieces of random size: an event may arrive in several of them, a character of several bytes too. */
  #send(response: ServerResponse, bytes: Buffer): void {
    let rest = bytes;
    for (let pieces = 1 + below(this.#options.random, MOST_PIECES); pieces > 1 && rest.length > 1; pieces--) {
      const cut = 1 + below(this.#options.random, rest.length - 1);
      response.write(rest.subarray(0, cut));
      rest = rest.subarray(cut);
    }
    if (rest.length > 0) response.write(rest);
    this.onStep();
  }

  #count(what: string): void {
    this.struck.set(what, (this.struck.get(what) ?? 0) + 1);
  }
}

function isBreak(fault: Fault | undefined): fault is Break {
  return fault === 'reset' || fault === 'close' || fault === 'end' || fault === 'stall';
}

function isRefusal(fault: Fault | undefined): fault is Refusal {
  return fault === '500' || fault === '410';
}

function statusOf(fault: Refusal): object {
  const reason = fault === '410' ? 'Expired' : 'InternalError';
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'chaos',
    reason,
    code: Number(fault),
  };
}
