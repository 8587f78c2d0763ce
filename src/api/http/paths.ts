import type { User } from '../auth/user.ts';
import { requireAllowed } from '../rest/authorize.ts';
import type { Core } from '../rest/core.ts';
import { OPENAPI_V2_ACCEPT, OPENAPI_V2_CONTENT_TYPE } from '../schema/openapi-v2-protobuf.ts';
import { methodNotAllowed, notAcceptable } from '../status.ts';
import { mediaRanges } from './accept.ts';
import type { Discovery, Published } from './discovery.ts';
import type { Exchange } from './exchange.ts';
import type { OpenApi } from './openapi.ts';
import { VERSION } from './version.ts';

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** Answers requests for everything that is not a resource: discovery, OpenAPI, version, health. */
export function servePath(
  core: Core,
  { discovery, openApi }: { discovery: Discovery; openApi: OpenApi },
  exchange: Exchange,
  path: string,
  user: User,
): void {
  requireAllowed(core.authorizer, { user, verb: exchange.method.toLowerCase(), path });
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') throw methodNotAllowed();
  const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
  switch (trimmed) {
    case '/':
      return exchange.sendObject(200, JSON_OUTPUT, { paths: rootPaths(core) });
    case '/version':
      return exchange.sendObject(200, JSON_OUTPUT, VERSION);
    case '/healthz':
    case '/livez':
    case '/readyz':
      return exchange.sendText(200, 'ok');
    case '/api':
    case '/apis':
      if (wantsAggregated(exchange)) {
        return sendPublished(exchange, discovery.aggregated(trimmed === '/api' ? 'api' : 'apis'), AGGREGATED);
      }
      break;
  }
  if (/^\/(?:healthz|livez|readyz)\/ping$/.test(trimmed)) return exchange.sendText(200, 'ok');
  if (trimmed === '/openapi/v2' && acceptsOnlyProtobuf(exchange)) {
    return sendPublished(exchange, openApi.protobufV2(), OPENAPI_V2_CONTENT_TYPE);
  }
  const document = trimmed.startsWith('/openapi/')
    ? openApiDocument(exchange, openApi, trimmed)
    : discovery.document(trimmed);
  if (document === undefined) return exchange.sendText(404, '404 page not found\n');
  sendPublished(exchange, document, 'application/json');
}

const JSON_OUTPUT = { format: 'json', as: undefined } as const;

function openApiDocument(exchange: Exchange, openApi: OpenApi, path: string): Published | undefined {
  const spoken = mediaRanges(exchange.headers.accept).some(({ type }) => SPOKEN.has(type));
  if (!spoken) throw notAcceptable(['application/json']);
  return openApi.document(path);
}

function acceptsOnlyProtobuf({ headers }: Exchange): boolean {
  const types = mediaRanges(headers.accept).map(({ type }) => type);
  return types.includes(OPENAPI_V2_ACCEPT) && !types.some(type => SPOKEN.has(type));
}

const SPOKEN: ReadonlySet<string> = new Set(['*/*', 'application/*', 'application/json']);

function wantsAggregated({ headers }: Exchange): boolean {
  // The first form that we speak: the beta of the aggregated one is not among them.
  for (const { type, parameters } of mediaRanges(headers.accept)) {
    const { g, v, as } = parameters;
    if (!SPOKEN.has(type)) continue;
    if (as === undefined) return false;
    if (g === 'apidiscovery.k8s.io' && v === 'v2' && as === 'APIGroupDiscoveryList') return true;
  }
  return false;
}

function sendPublished(exchange: Exchange, { body, etag }: Published, contentType: string): void {
  const headers = { etag, vary: 'Accept', 'cache-control': 'public' };
  if (exchange.headers['if-none-match'] === etag) exchange.sendBytes(304, contentType, Buffer.alloc(0), headers);
  else exchange.sendBytes(200, contentType, body, headers);
}

function rootPaths(core: Core): string[] {
  const groups = core.registry.groupVersions().filter(({ group }) => group !== '');
  const paths = groups.flatMap(({ group, version }) => [`/apis/${group}`, `/apis/${group}/${version}`]);
  return [
    '/api',
    '/api/v1',
    '/apis',
    ...new Set(paths),
    '/healthz',
    '/livez',
    '/openapi/v2',
    '/openapi/v3',
    '/readyz',
    '/version',
  ];
}
