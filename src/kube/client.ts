import type { Access } from './access.ts';
import { answeredError, retryAfterMs, warningsOf } from './answer.ts';
import { type Clock, sleep, systemClock } from './clock.ts';
import { Deadline } from './deadline.ts';
import { seconds } from './duration.ts';
import { ConnectionError, KubeError } from './error.ts';
import { jsonLines } from './json-lines.ts';
import { collectionPath, objectPath, queryString } from './path.ts';
import type {
  CallOptions,
  DeleteOptions,
  Kube,
  ListOptions,
  ObjectList,
  Patch,
  PatchOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './port.ts';
import { apiVersionOf, type KubeObject, keyOf, type ObjectKey, PODS, type Resource } from './resource.ts';
import { type HttpAnswer, type HttpRequest, Transport } from './transport.ts';
import { VERSION } from './version.ts';

export interface HttpKubeOptions {
  readonly clock?: Clock | undefined;
  /** How long one call may take, and how long a watch may take to begin. */
  readonly requestTimeoutMs?: number | undefined;
  /** Named in server-side apply where the call names nobody. */
  readonly fieldManager?: string | undefined;
  /** Hears what the API warns about, deprecated versions for instance. */
  readonly onWarning?: ((text: string) => void) | undefined;
}

const REQUEST_TIMEOUT_MS = seconds(30);
/** kube-apiserver refuses a request body larger than this. */
const LARGEST_REQUEST_BYTES = 3 * 1024 * 1024;
const LARGEST_ANSWER_BYTES = 256 * 1024 * 1024;
/** An object of etcd's largest size, and room for its JSON form. */
const LARGEST_EVENT_BYTES = 16 * 1024 * 1024;
/** How often a server that says "too busy, come back in n seconds" is asked again within one call, and the longest n. */
const BUSY_RETRIES = 5;
const LONGEST_BUSY_WAIT_MS = seconds(30);

const PATCH_TYPES: Record<Patch['type'], string> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** The `Kube` port over HTTPS, to any Kubernetes API. */
export class HttpKube implements Kube {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #fieldManager: string;
  readonly #onWarning: (text: string) => void;

  constructor(access: Access, options: HttpKubeOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#transport = new Transport(access, this.#clock);
    this.#timeoutMs = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
    this.#fieldManager = options.fieldManager ?? 'rotunda';
    this.#onWarning = options.onWarning ?? (() => {});
  }

  async get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey, options: CallOptions = {}): Promise<T> {
    return (await this.request('GET', objectPath(resource, key), options)) as T;
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    const { signal, namespace, ...query } = options;
    const path = `${collectionPath(resource, namespace)}${queryString(query)}`;
    const list = (await this.request('GET', path, { signal })) as Partial<ObjectList<T>>;
    const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    // The API leaves the type out of list items; with it, an object looks the same wherever it came from.
    return { items: (list.items ?? []).map(item => Object.assign(item, type)), metadata: list.metadata ?? {} };
  }

  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const { signal, namespace, ...query } = options;
    const match = query.sendInitialEvents ? { resourceVersionMatch: 'NotOlderThan' } : {};
    const path = `${collectionPath(resource, namespace)}${queryString({ watch: true, ...query, ...match })}`;
    const deadline = this.#deadline('GET', path, signal);
    let answer: HttpAnswer | undefined;
    try {
      answer = await this.#send({ method: 'GET', path, signal: deadline.signal, stream: true });
      deadline.lift();
      for await (const line of jsonLines(answer.body, LARGEST_EVENT_BYTES)) yield eventOf<T>(line);
    } catch (error) {
      if (signal?.aborted) return;
      throw asKnownError(error, 'GET', path);
    } finally {
      deadline.end();
      answer?.body.on('error', () => {}).destroy();
    }
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<T> {
    const { namespace } = object.metadata ?? {};
    if (resource.namespaced && namespace === undefined) {
      throw new TypeError(`cannot create ${resource.kind} "${object.metadata?.name ?? ''}" without a namespace`);
    }
    const path = `${collectionPath(resource, namespace)}${writeQuery(options)}`;
    return (await this.request('POST', path, { ...options, body: typed(resource, object) })) as T;
  }

  update<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<T> {
    return this.#put(resource, object, undefined, options);
  }

  updateStatus<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<T> {
    return this.#put(resource, object, 'status', options);
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    key: ObjectKey,
    patch: Patch,
    options: PatchOptions = {},
  ): Promise<T> {
    const isApply = patch.type === 'apply';
    const fieldManager = options.fieldManager ?? (isApply ? this.#fieldManager : undefined);
    const query = writeQuery({ ...options, fieldManager }, isApply ? { force: options.force } : {});
    const path = `${objectPath(resource, key, options.subresource)}${query}`;
    const body = isApply ? typed(resource, patch.body) : patch.body;
    const { signal } = options;
    return (await this.request('PATCH', path, { signal, body, contentType: PATCH_TYPES[patch.type] })) as T;
  }

  async delete(resource: Resource, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', ...deleteOptions(options) };
    await this.request('DELETE', objectPath(resource, key), { signal: options.signal, body });
  }

  async evict(pod: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    const body = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: pod.name, namespace: pod.namespace },
      deleteOptions: deleteOptions(options),
    };
    const path = `${objectPath(PODS, pod, 'eviction')}${writeQuery({ dryRun: options.dryRun })}`;
    // 429 is the answer of a disruption budget here and not a busy server: the caller decides how long to wait.
    await this.request('POST', path, { signal: options.signal, body, busyRetries: 0 });
  }

  /** Sends any request and gives the JSON value of the answer: for what the port has no verb for. */
  async request(method: HttpRequest['method'], path: string, options: RequestOptions = {}): Promise<unknown> {
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    if (body !== undefined && Buffer.byteLength(body) > LARGEST_REQUEST_BYTES) {
      const message = `${method} ${plain(path)}: the object is larger than ${LARGEST_REQUEST_BYTES} bytes`;
      throw new KubeError(413, 'RequestEntityTooLarge', message);
    }
    const { contentType = 'application/json', busyRetries = BUSY_RETRIES, signal } = options;
    for (let attempt = 0; ; attempt++) {
      const deadline = this.#deadline(method, path, signal);
      let waitMs: number | undefined;
      try {
        const answer = await this.#send({ method, path, body, contentType, signal: deadline.signal, stream: false });
        return parseAnswer(await textOf(answer.body));
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        waitMs = attempt < busyRetries && error instanceof Busy ? error.waitMs : undefined;
        if (waitMs === undefined) throw asKnownError(error, method, path);
      } finally {
        deadline.end();
      }
      await sleep(this.#clock, Math.min(waitMs, LONGEST_BUSY_WAIT_MS), signal);
    }
  }

  /** Ends all requests and watches and closes every connection. */
  close(): Promise<void> {
    return this.#transport.close();
  }

  async #put<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    subresource: string | undefined,
    options: WriteOptions,
  ): Promise<T> {
    const path = `${objectPath(resource, keyOf(object), subresource)}${writeQuery(options)}`;
    return (await this.request('PUT', path, { signal: options.signal, body: typed(resource, object) })) as T;
  }

  #deadline(method: string, path: string, signal: AbortSignal | undefined): Deadline {
    const timeUp = () =>
      new ConnectionError('TIMEOUT', `${method} ${plain(path)}: no answer within ${this.#timeoutMs / 1000} s`);
    return new Deadline(this.#clock, this.#timeoutMs, signal, timeUp);
  }

  /** Gives an answer of success or throws what the API said. Tries again where the first try cannot have done anything. */
  async #send(call: Call, retried = false): Promise<HttpAnswer> {
    const { method, path, body, contentType, signal, stream } = call;
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': `rotunda/${VERSION}` };
    if (body !== undefined) headers['content-type'] = contentType ?? 'application/json';
    let answer: HttpAnswer;
    try {
      answer = await this.#transport.send({ method, path, headers, body, signal, stream });
    } catch (error) {
      // A server may close an idle connection just when we use it again; a read is then simply asked once more.
      const again = method === 'GET' && !retried && !signal.aborted && isReset(error);
      if (again) return this.#send(call, true);
      throw error;
    }
    for (const warning of warningsOf(answer.headers.warning)) this.#onWarning(warning);
    if (answer.statusCode < 300) return answer;
    const text = await textOf(answer.body);
    if (answer.statusCode === 401 && !retried && this.#transport.refused()) return this.#send(call, true);
    const error = answeredError(answer.statusCode, text, method, plain(path));
    const waitMs = retryAfterMs(answer.headers['retry-after'], this.#clock.now());
    const mayWait = answer.statusCode === 429 || (answer.statusCode >= 500 && method === 'GET');
    throw mayWait && waitMs !== undefined ? new Busy(error, waitMs) : error;
  }
}

export interface RequestOptions extends CallOptions {
  readonly body?: unknown;
  readonly contentType?: string | undefined;
  /** How often to try again when the server says it is too busy now. */
  readonly busyRetries?: number | undefined;
}

type Call = Omit<HttpRequest, 'headers'> & { readonly contentType?: string | undefined };

/** An answer with a `Retry-After`: the error, and how long the server wants us to stay away. */
class Busy extends Error {
  readonly error: KubeError;
  readonly waitMs: number;

  constructor(error: KubeError, waitMs: number) {
    super(error.message);
    this.error = error;
    this.waitMs = waitMs;
  }
}

function typed<T extends object>(resource: Resource, object: T): T {
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}

function writeQuery(
  { dryRun, fieldManager, fieldValidation }: WriteOptions,
  rest: Record<string, boolean | undefined> = {},
): string {
  return queryString({ dryRun: dryRun ? 'All' : undefined, fieldManager, fieldValidation, ...rest });
}

function deleteOptions({ preconditions, propagationPolicy, gracePeriodSeconds, dryRun }: DeleteOptions): object {
  return { preconditions, propagationPolicy, gracePeriodSeconds, ...(dryRun ? { dryRun: ['All'] } : {}) };
}

function eventOf<T extends KubeObject>(line: unknown): WatchEvent<T> {
  const { type, object } = (line ?? {}) as { type?: unknown; object?: unknown };
  if (typeof object === 'object' && object !== null) {
    if (type === 'ERROR') throw KubeError.fromStatus(object, 500);
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK') {
      return { type, object: object as T };
    }
  }
  throw new ConnectionError('BAD_ANSWER', `expected a watch event, found one of type ${String(type).slice(0, 20)}`);
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > LARGEST_ANSWER_BYTES) {
      throw new ConnectionError('ANSWER_TOO_LARGE', `the answer is larger than ${LARGEST_ANSWER_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString('utf8');
}

function parseAnswer(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's message quotes the text, which may be a Secret.
    throw new ConnectionError('BAD_ANSWER', `the answer of ${text.length} characters is not JSON`);
  }
}

function isReset(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET';
}

/** What callers see: an answer of the API, or a connection that failed, with what was asked for. */
function asKnownError(error: unknown, method: string, path: string): unknown {
  if (error instanceof Busy) return error.error;
  if (error instanceof KubeError || error instanceof TypeError) return error;
  if (error instanceof ConnectionError && error.code === 'TIMEOUT') return error;
  const { code, message } = error as { code?: unknown; message?: string };
  const text = `${method} ${plain(path)}: ${message || String(code)}`;
  return new ConnectionError(typeof code === 'string' ? code : 'BAD_ANSWER', text, { cause: error });
}

/** The path without its query: continue tokens and selectors only make messages long. */
function plain(path: string): string {
  return path.split('?', 1)[0] ?? path;
}
