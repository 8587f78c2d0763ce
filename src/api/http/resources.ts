import { isNotFound } from '../../kube/error.ts';
import type { User } from '../auth/user.ts';
import { apiVersionOfKind, type Kind, type Verb } from '../kinds/kind.ts';
import { kindOf } from '../protobuf/messages.ts';
import { answer } from '../rest/answer.ts';
import { asked, requireAllowed } from '../rest/authorize.ts';
import type { Call, Core } from '../rest/core.ts';
import { create } from '../rest/create.ts';
import { remove } from '../rest/delete.ts';
import { type AllDeleteOptions, deleteParameters } from '../rest/delete-options.ts';
import { endpointOf } from '../rest/endpoint.ts';
import { PATCH_MEDIA_TYPES, type PatchType, patch } from '../rest/patch.ts';
import { readLog } from '../rest/pod/log.ts';
import { get, list, type Page } from '../rest/read.ts';
import { update } from '../rest/update.ts';
import { present } from '../rest/view.ts';
import { checkWatch, watch } from '../rest/watch.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { decode, decodeError } from '../schema/decode.ts';
import { isObject, tooDeep } from '../schema/json.ts';
import { pathSegment } from '../schema/name.ts';
import type { Schema } from '../schema/schema.ts';
import { selectedName } from '../select/field.ts';
import { badRequest, methodNotAllowed, noSuchPath, quote, unsupportedMediaType } from '../status.ts';
import type { Entry } from '../store/entry.ts';
import { negotiate, type Output, streamType } from './accept.ts';
import { encodeList, encodeObject, type View } from './encode.ts';
import type { Exchange } from './exchange.ts';
import type { ResourceTarget } from './path.ts';
import {
  deleteOptions,
  isWatch,
  listParameters,
  logParameters,
  patchParameters,
  watchParameters,
  writeParameters,
} from './query.ts';
import { mediaTypeOf, parseJson, parseObject, parseYaml, readBody } from './request-body.ts';
import type { WatchHub } from './watch-hub.ts';

/** Verbs of collections: for whoever may use them, a field selector with a name is a name. */
const OF_SEVERAL = new Set(['list', 'watch', 'deletecollection']);

/** Answers requests for resources. */
export async function serveResource(
  core: Core,
  hub: WatchHub,
  exchange: Exchange,
  target: ResourceTarget,
  user: User,
): Promise<void> {
  const verb = verbOf(exchange, target);
  if (verb === undefined) throw methodNotAllowed();
  const named =
    target.name || (OF_SEVERAL.has(verb) ? selectedName(exchange.query.get('fieldSelector') ?? undefined) : '');
  requireAllowed(core.authorizer, { user, verb, ...asked({ ...target, name: named }) });
  const kind = core.registry.find(target.group, target.version, target.plural);
  if (kind === undefined) return sendNoSuchResource(core, exchange, target);
  checkServed(kind, target, verb);
  const { namespace, name, subresource } = target;
  const call: Call = { user, kind, namespace, name, subresource, warn: text => exchange.warn(text) };
  if (kind.custom?.deprecationWarning !== undefined) call.warn(kind.custom.deprecationWarning);
  await new ResourceRequest(core, hub, exchange, call).serve(verb);
}

/** Below the groups of definitions the real server answers an unknown resource in plain text; clients then name it themselves. */
function sendNoSuchResource(core: Core, exchange: Exchange, { group }: ResourceTarget): void {
  const isBuiltin = core.registry.all().some(kind => kind.group === group && kind.custom === undefined);
  if (isBuiltin) throw noSuchPath();
  exchange.sendText(404, '404 page not found\n');
}

function verbOf({ method, query }: Exchange, { name, watch: oldWatch }: ResourceTarget): Verb | undefined {
  switch (method) {
    case 'GET':
      if (oldWatch || isWatch(query)) return 'watch';
      return name === '' ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return name === '' ? undefined : 'update';
    case 'PATCH':
      return name === '' ? undefined : 'patch';
    case 'DELETE':
      return name === '' ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}

function checkServed(kind: Kind, { namespace, name, subresource }: ResourceTarget, verb: Verb): void {
  if (!kind.namespaced && namespace !== '') throw noSuchPath();
  if (kind.namespaced && namespace === '' && name !== '') throw noSuchPath();
  const below = subresource === '' ? undefined : kind.subresources.find(candidate => candidate.name === subresource);
  if (subresource !== '' && below === undefined) throw noSuchPath();
  const wrong = name === '' ? undefined : pathSegment(name)[0];
  if (wrong !== undefined) throw badRequest(`Name parameter invalid: ${quote(name)}: ${wrong}`);
  const verbs = below?.verbs ?? kind.verbs;
  const unnamed = kind.namespaced && namespace === '' && (verb === 'create' || verb === 'deletecollection');
  const named = verb === 'create' && name !== '' && subresource === '';
  if (!verbs.includes(verb) || unnamed || named) throw methodNotAllowed();
}

function hasProtobuf(kind: Kind): boolean {
  return kindOf(apiVersionOfKind(kind), kind.kind) !== undefined;
}

class ResourceRequest {
  readonly #core: Core;
  readonly #hub: WatchHub;
  readonly #exchange: Exchange;
  readonly #call: Call;
  readonly #output: Output;

  constructor(core: Core, hub: WatchHub, exchange: Exchange, call: Call) {
    this.#core = core;
    this.#hub = hub;
    this.#exchange = exchange;
    this.#call = call;
    this.#output = negotiate(exchange.headers.accept, hasProtobuf(call.kind));
  }

  serve(verb: Verb): Promise<void> | void {
    switch (verb) {
      case 'get':
        return this.#call.subresource === 'log' ? this.#log() : this.#get();
      case 'list':
        return this.#sendList(list(this.#core, this.#call, listParameters(this.#exchange.query)));
      case 'watch':
        return this.#watch();
      case 'create':
        return this.#create();
      case 'update':
        return this.#update();
      case 'patch':
        return this.#patch();
      case 'delete':
        return this.#delete();
      case 'deletecollection':
        return this.#deleteCollection();
    }
  }

  #get(): void {
    const entry = get(this.#core, this.#call, this.#exchange.query.get('resourceVersion') ?? undefined);
    this.#send(200, entry);
  }

  #watch(): void {
    const parameters = watchParameters(this.#exchange.query);
    checkWatch(this.#call, parameters);
    const writer = this.#exchange.stream(streamType(this.#output, hasProtobuf(this.#call.kind)));
    const stream = this.#hub.open(this.#view(), writer, parameters, sink =>
      watch(this.#core, this.#call, parameters, sink),
    );
    this.#exchange.closed.addEventListener('abort', () => stream.gone());
  }

  async #create(): Promise<void> {
    const { query, userAgent } = this.#exchange;
    const parameters = writeParameters(query, userAgent, 'CreateOptions');
    const body = await this.#object();
    if (this.#call.kind.bucket === '' || this.#call.subresource !== '') {
      this.#exchange.sendObject(201, this.#output, await answer(this.#core, this.#call, body, parameters));
    } else {
      this.#send(201, await create(this.#core, this.#call, body, parameters));
    }
  }

  async #update(): Promise<void> {
    const { query, userAgent } = this.#exchange;
    const parameters = writeParameters(query, userAgent, 'UpdateOptions');
    const { entry, created } = await update(this.#core, this.#call, await this.#object(), parameters);
    this.#send(created ? 201 : 200, entry);
  }

  async #patch(): Promise<void> {
    const { query, userAgent, headers } = this.#exchange;
    const type = patchType(headers['content-type']);
    const bytes = await this.#bytes();
    const parameters = patchParameters(query, userAgent, type);
    const body = type === 'apply' ? parseYaml(bytes) : parseJson(bytes, why => `error decoding patch: ${why}`);
    const { entry, created } = await patch(this.#core, this.#call, body, parameters);
    this.#send(created ? 201 : 200, entry);
  }

  async #delete(): Promise<void> {
    const { kind, name } = this.#call;
    const parameters = deleteParameters(await this.#deleteOptions());
    const { entry, gone } = await remove(this.#core, this.#call, parameters);
    if (!gone || RETURNED_WHEN_GONE.has(kind.bucket)) return this.#send(200, entry);
    const { uid } = entry.object.metadata ?? {};
    const details = { name, ...(kind.group === '' ? {} : { group: kind.group }), kind: kind.plural, uid };
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
    this.#exchange.sendObject(200, this.#output, status);
  }

  async #deleteCollection(): Promise<void> {
    const page = list(this.#core, this.#call, listParameters(this.#exchange.query));
    const parameters = deleteParameters(await this.#deleteOptions());
    for (const { object } of page.entries) {
      const { name = '', namespace = '' } = object.metadata ?? {};
      await remove(this.#core, { ...this.#call, namespace, name }, parameters).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
    this.#sendList(page);
  }

  async #log(): Promise<void> {
    const { container, ...options } = logParameters(this.#exchange.query, this.#call.name);
    const signal = this.#exchange.closed;
    const chunks = await readLog(this.#core, this.#call, container, { ...options, signal });
    const writer = this.#exchange.stream('text/plain');
    try {
      for await (const chunk of chunks) {
        if (signal.aborted) break;
        writer.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
        await this.#exchange.drained();
      }
      writer.end();
    } catch {
      // The headers are out; a broken stream is all that can still be said.
      writer.destroy();
    }
  }

  #bytes(): Promise<Buffer> {
    return readBody(this.#exchange.request, this.#exchange.headers['content-length']);
  }

  async #object() {
    const { kind, subresource } = this.#call;
    const below = kind.subresources.find(({ name }) => name === subresource);
    return parseObject(await this.#bytes(), this.#exchange.headers['content-type'], below?.kind?.kind ?? kind.kind);
  }

  async #deleteOptions(): Promise<AllDeleteOptions> {
    const fromUrl = deleteOptions(this.#exchange.query);
    const bytes = await this.#bytes();
    if (bytes.length === 0) return fromUrl;
    const { value } = parseObject(bytes, this.#exchange.headers['content-type'], 'DeleteOptions');
    if (!isObject(value) || tooDeep(value))
      throw badRequest('the object provided is unrecognized (must be of type DeleteOptions)');
    if (value['kind'] !== undefined && value['kind'] !== 'DeleteOptions') {
      throw badRequest(`${JSON.stringify(value['kind'])} cannot be handled as a DeleteOptions`);
    }
    const schema = builtinSchema('v1', 'DeleteOptions') as Schema;
    const wrong = decodeError(schema, value);
    if (wrong !== undefined) throw badRequest(wrong);
    return { ...fromUrl, ...(decode(schema, value) as AllDeleteOptions) };
  }

  #view(): View {
    const includeObject = this.#exchange.query.get('includeObject');
    return {
      kind: this.#call.kind,
      ...this.#output,
      includeObject: includeObject === 'None' || includeObject === 'Object' ? includeObject : 'Metadata',
      now: () => this.#core.clock.now(),
    };
  }

  #send(code: number, entry: Entry): void {
    const { kind, subresource } = this.#call;
    if (subresource === 'scale') {
      this.#exchange.sendObject(code, this.#output, endpointOf(kind, subresource).read(present(kind, entry)));
    } else {
      this.#exchange.sendObject(code, this.#output, encodeObject(this.#view(), entry));
    }
  }

  #sendList(page: Page): void {
    this.#exchange.sendObject(200, this.#output, encodeList(this.#view(), page));
  }
}

/** The last state of these is sent back when they are deleted; of others, only that they are gone. */
const RETURNED_WHEN_GONE: ReadonlySet<string> = new Set(['/pods', '/services', '/serviceaccounts']);

function patchType(contentType: string | undefined): PatchType {
  const mediaType = mediaTypeOf(contentType);
  const types = Object.keys(PATCH_MEDIA_TYPES) as PatchType[];
  const found = types.find(type => PATCH_MEDIA_TYPES[type] === mediaType);
  if (found === undefined) throw unsupportedMediaType(Object.values(PATCH_MEDIA_TYPES));
  return found;
}
