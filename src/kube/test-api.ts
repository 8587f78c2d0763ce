import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { KubeObject } from './resource.ts';

/** A request as the server saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

/** Answers instead of the API when it returns true. */
export type Interceptor = (seen: SeenRequest, response: ServerResponse, request: IncomingMessage) => boolean;

/** Sends one line of a watch; a chaotic one may cut it, delay it or kill the connection. False ends the watch. */
export type LineSender = (response: ServerResponse, line: string) => boolean;

type Stored = KubeObject & { metadata: NonNullable<KubeObject['metadata']> };
interface Change {
  readonly revision: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly collection: string;
  readonly object: Stored;
}
interface Watcher {
  readonly collection: string;
  readonly response: ServerResponse;
  sent: number;
}

/** A small Kubernetes API over HTTP(S) for the tests of the client: objects of any kind, pages, watches, revisions. */
export class TestApi {
  readonly requests: SeenRequest[] = [];
  readonly sockets = new Set<Socket>();
  intercept: Interceptor | undefined;
  sendLine: LineSender = (response, line) => response.write(line) || true;
  readonly #server: Server;
  readonly #objects = new Map<string, Stored>();
  readonly #watchers = new Set<Watcher>();
  #history: Change[] = [];
  #compacted = 0;
  #revision = 100;

  private constructor(tls: ServerOptions | undefined) {
    const handle = (request: IncomingMessage, response: ServerResponse) => void this.#handle(request, response);
    this.#server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
    this.#server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => this.sockets.delete(socket));
    });
    this.#server.on('tlsClientError', () => {});
  }

  static async start(tls?: ServerOptions): Promise<TestApi> {
    const api = new TestApi(tls);
    await new Promise<void>(resolve => {
      api.#server.listen(0, '127.0.0.1', resolve);
    });
    return api;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `${'setSecureContext' in this.#server ? 'https' : 'http'}://127.0.0.1:${port}`;
  }

  get revision(): string {
    return String(this.#revision);
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Everything that ever happened, for a test to compare with what it heard. */
  get history(): readonly Change[] {
    return this.#history;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>(resolve => {
      this.#server.close(() => {
        resolve();
      });
    });
  }

  all(collection: string): Stored[] {
    return [...this.#objects]
      .filter(([path]) => isWithin(collection, path.slice(0, path.lastIndexOf('/'))))
      .map(([, object]) => object);
  }

  /** Creates or changes an object behind everybody's back. */
  put(collection: string, object: KubeObject): Stored {
    const path = `${collection}/${object.metadata?.name ?? ''}`;
    const known = this.#objects.get(path);
    const uid = known?.metadata.uid ?? `uid-${this.#revision + 1}`;
    const resourceVersion = String(this.#revision + 1);
    const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion } };
    this.#objects.set(path, stored);
    this.#record(known === undefined ? 'ADDED' : 'MODIFIED', collection, stored);
    return stored;
  }

  remove(collection: string, name: string): void {
    const object = this.#objects.get(`${collection}/${name}`);
    if (object === undefined) return;
    this.#objects.delete(`${collection}/${name}`);
    const resourceVersion = String(this.#revision + 1);
    this.#record('DELETED', collection, { ...object, metadata: { ...object.metadata, resourceVersion } });
  }

  /** Forgets how it came to now: watches from before get 410. */
  compact(): void {
    this.#compacted = this.#revision;
  }

  /** Loses everything and starts counting again, as a store that was wiped. */
  wipe(): void {
    this.#objects.clear();
    this.#history = [];
    this.#revision = this.#compacted = 1;
    for (const { response } of this.#watchers) response.end();
  }

  bookmark(): void {
    for (const watcher of this.#watchers) {
      this.#send(watcher, 'BOOKMARK', { metadata: { resourceVersion: String(watcher.sent) } });
    }
  }

  #record(type: Change['type'], collection: string, object: Stored): void {
    this.#revision++;
    this.#history.push({ revision: this.#revision, type, collection, object });
    for (const watcher of this.#watchers) this.#feed(watcher);
  }

  #feed(watcher: Watcher): void {
    // The position of a revision in the history is known: every change has exactly one.
    const first = this.#history[0]?.revision ?? 0;
    for (let i = Math.max(0, watcher.sent + 1 - first); i < this.#history.length; i++) {
      const change = this.#history[i];
      if (change === undefined || !this.#watchers.has(watcher)) return;
      watcher.sent = change.revision;
      if (isWithin(watcher.collection, change.collection)) this.#send(watcher, change.type, change.object);
    }
  }

  #send(watcher: Watcher, type: string, object: object): void {
    if (!this.sendLine(watcher.response, `${JSON.stringify({ type, object })}\n`)) this.#watchers.delete(watcher);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://api');
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const text = Buffer.concat(chunks).toString();
    const { method = 'GET', headers } = request;
    const seen = { method, path: url.pathname, query: url.searchParams, headers, body: text && JSON.parse(text) };
    this.requests.push(seen);
    if (this.intercept?.(seen, response, request) === true) return;
    if (url.searchParams.has('watch')) this.#watch(seen, response);
    else if (method === 'GET') this.#read(seen, response);
    else this.#write(seen, response);
  }

  #watch({ path, query }: SeenRequest, response: ServerResponse): void {
    const from = Number(query.get('resourceVersion') ?? this.#revision);
    if (from < this.#compacted) {
      answer(response, 410, 'Expired', `too old resource version: ${from} (${this.#compacted})`);
      return;
    }
    if (from > this.#revision) {
      const details = { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] };
      const message = `Too large resource version: ${from}, current: ${this.#revision}`;
      send(response, 504, { kind: 'Status', status: 'Failure', code: 504, reason: 'Timeout', message, details });
      return;
    }
    const watcher = { collection: path, response, sent: from };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    this.#watchers.add(watcher);
    response.once('close', () => this.#watchers.delete(watcher));
    this.#feed(watcher);
  }

  #read({ path, query }: SeenRequest, response: ServerResponse): void {
    const object = this.#objects.get(path);
    if (object !== undefined) {
      send(response, 200, object);
      return;
    }
    if (!/\/[a-z]+s$/.test(path)) {
      answer(response, 404, 'NotFound', `${path} not found`);
      return;
    }
    // A continue token is "<revision>:<offset>" and good for as long as nothing has changed or been compacted.
    const [revision = this.revision, offset = '0'] = (query.get('continue') ?? `${this.#revision}:0`).split(':');
    if (revision !== this.revision) {
      answer(response, 410, 'Expired', 'the provided continue parameter is too old');
      return;
    }
    const everything = this.all(path);
    const limit = Number(query.get('limit') ?? everything.length);
    const items = everything
      .slice(Number(offset), Number(offset) + limit)
      .map(({ kind: _kind, apiVersion: _version, ...rest }) => rest);
    const next = Number(offset) + limit;
    const metadata = {
      resourceVersion: revision,
      ...(next < everything.length ? { continue: `${revision}:${next}` } : {}),
    };
    send(response, 200, { kind: 'List', metadata, items });
  }

  #write({ method, path, body }: SeenRequest, response: ServerResponse): void {
    const collection = method === 'POST' ? path : path.slice(0, path.lastIndexOf('/'));
    const object = (body || {}) as KubeObject;
    const name = method === 'POST' ? (object.metadata?.name ?? '') : path.slice(path.lastIndexOf('/') + 1);
    const stored = this.#objects.get(`${collection}/${name}`);
    const expected = object.metadata?.resourceVersion;
    if (method === 'POST' && stored !== undefined) answer(response, 409, 'AlreadyExists', `"${name}" already exists`);
    else if (method !== 'POST' && stored === undefined) answer(response, 404, 'NotFound', `"${name}" not found`);
    else if (method === 'PUT' && expected !== undefined && expected !== stored?.metadata.resourceVersion) {
      answer(response, 409, 'Conflict', `"${name}" has been modified`);
    } else if (method === 'DELETE') {
      this.remove(collection, name);
      send(response, 200, { kind: 'Status', status: 'Success' });
    } else {
      send(response, method === 'POST' ? 201 : 200, this.put(collection, { ...stored, ...object }));
    }
  }
}

/** `/api/v1/configmaps` holds those of all namespaces. */
function isWithin(asked: string, collection: string): boolean {
  return asked === collection || asked === collection.replace(/\/namespaces\/[^/]+/, '');
}

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** Answers with a `Status` of failure. */
export function answer(response: ServerResponse, code: number, reason: string, message: string): void {
  send(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message });
}

/** Waits until a condition holds; the deadline only bounds how long a failing test takes. */
export async function eventually(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited 10 s in vain until ${what}`);
    await new Promise(resolve => {
      setTimeout(resolve, 2);
    });
  }
}
