import { type ApiResource, type ApiSubresource, groupVersionPath } from './api-resource.ts';
import { DeleteOptions, ListMeta, Status } from './builtin/meta.ts';
import { TYPE_META } from './dsl.ts';
import type { GroupVersionKind, Schema } from './schema.ts';

/** One thing a client can do, before it is written down in either version of OpenAPI. */
export interface Operation {
  readonly path: string;
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  readonly id: string;
  readonly description: string;
  readonly tag: string;
  readonly action: string;
  readonly gvk: GroupVersionKind;
  readonly pathParameters: readonly string[];
  readonly queryParameters: readonly QueryParameter[];
  readonly body:
    | { readonly schema: Schema; readonly name: string; readonly contentTypes: readonly string[] }
    | undefined;
  readonly answer: { readonly schema: Schema; readonly name: string };
}

export interface QueryParameter {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'integer';
  readonly description: string;
}

/** Everything a client can do with a resource and its subresources. */
export function operationsOf(resource: ApiResource): Operation[] {
  const base = `/${groupVersionPath(resource)}`;
  const collection = resource.namespaced
    ? `${base}/namespaces/{namespace}/${resource.plural}`
    : `${base}/${resource.plural}`;
  const item = `${collection}/{name}`;
  const operations = VERBS.filter(({ verb }) => resource.verbs.includes(verb)).map(verb =>
    operation(resource, verb, verb.onItem ? item : collection),
  );
  if (resource.namespaced && resource.verbs.includes('list')) {
    operations.push(operation(resource, LIST, `${base}/${resource.plural}`, 'ForAllNamespaces'));
  }
  for (const subresource of resource.subresources ?? []) {
    const verbs = subresource.verbs.flatMap(
      verb => VERBS.find(known => known.verb === verb && known.action !== 'list') ?? [],
    );
    for (const verb of verbs) {
      operations.push(
        operation(asResource(resource, subresource), verb, `${item}/${subresource.name}`, capital(subresource.name)),
      );
    }
  }
  return operations;
}

/** The name a type is published under: that of its Go type, or one made from the group of a custom resource. */
export function definitionName({ group, version, kind }: GroupVersionKind, schema: Schema | undefined): string {
  return schema?.builtin?.name ?? `${group.split('.').reverse().join('.')}.${version}.${kind}`;
}

interface Verb {
  readonly verb: string;
  readonly method: Operation['method'];
  readonly action: string;
  readonly word: string;
  readonly onItem: boolean;
  readonly does: string;
}

const LIST: Verb = {
  verb: 'list',
  method: 'get',
  action: 'list',
  word: 'list',
  onItem: false,
  does: 'Lists or watches objects',
};

const VERBS: readonly Verb[] = [
  LIST,
  { verb: 'create', method: 'post', action: 'post', word: 'create', onItem: false, does: 'Creates an object' },
  {
    verb: 'deletecollection',
    method: 'delete',
    action: 'deletecollection',
    word: 'deleteCollection',
    onItem: false,
    does: 'Deletes objects',
  },
  { verb: 'get', method: 'get', action: 'get', word: 'read', onItem: true, does: 'Reads the object' },
  { verb: 'update', method: 'put', action: 'put', word: 'replace', onItem: true, does: 'Replaces the object' },
  { verb: 'patch', method: 'patch', action: 'patch', word: 'patch', onItem: true, does: 'Changes the object in part' },
  { verb: 'delete', method: 'delete', action: 'delete', word: 'delete', onItem: true, does: 'Deletes the object' },
];

const text = (name: string, description: string): QueryParameter => ({ name, type: 'string', description });
const flag = (name: string, description: string): QueryParameter => ({ name, type: 'boolean', description });
const number = (name: string, description: string): QueryParameter => ({ name, type: 'integer', description });

const DRY_RUN = text('dryRun', '`All` goes through everything and stores nothing.');
const PRETTY = text('pretty', '`true` prints the answer for people.');
const WRITE = [
  DRY_RUN,
  text('fieldManager', 'Name of whoever makes the change.'),
  text('fieldValidation', 'What to do about unknown and duplicate fields: `Ignore`, `Warn` or `Strict`.'),
];
const SELECT = [
  text('labelSelector', 'Only objects with these labels.'),
  text('fieldSelector', 'Only objects with these fields.'),
  number('limit', 'Most objects of one page.'),
  text('continue', 'Token of the next page.'),
  text('resourceVersion', 'Version that the answer may not be older than.'),
  text('resourceVersionMatch', '`Exact` or `NotOlderThan`.'),
  number('timeoutSeconds', 'How long the request may take.'),
];
const WATCH = [
  flag('watch', 'Follow changes instead of listing.'),
  flag('allowWatchBookmarks', 'Send bookmarks while watching.'),
  flag('sendInitialEvents', 'Start the watch with all objects.'),
];
const DELETE = [
  DRY_RUN,
  number('gracePeriodSeconds', 'Seconds before the object goes.'),
  text('propagationPolicy', 'What happens to dependents.'),
  flag('orphanDependents', 'Deprecated; use `propagationPolicy`.'),
];

const QUERY: Readonly<Record<string, readonly QueryParameter[]>> = {
  list: [...SELECT, ...WATCH],
  post: WRITE,
  put: WRITE,
  patch: [...WRITE, flag('force', 'Server-side apply: take over fields of others.')],
  delete: DELETE,
  deletecollection: [...DELETE, ...SELECT],
};

const STRATEGIC = 'application/strategic-merge-patch+json';
const PATCH_TYPES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  STRATEGIC,
  'application/apply-patch+yaml',
];
/** Nobody knows the merge keys of custom resources. `kubectl apply` sends what this offers. */
const PATCH_TYPES_OF_CUSTOM = PATCH_TYPES.filter(type => type !== STRATEGIC);
const PATCH: Schema = { type: 'object', description: 'A patch in one of its formats.' };
const PATCH_NAME = 'io.k8s.apimachinery.pkg.apis.meta.v1.Patch';

function operation(resource: ApiResource, verb: Verb, path: string, suffix = ''): Operation {
  const { group, version, kind, schema } = resource;
  const gvk = { group, version, kind };
  const name = definitionName(gvk, schema);
  const own = { schema, name };
  const scope = path.includes('{namespace}') ? 'Namespaced' : '';
  return {
    path,
    method: verb.method,
    id: `${verb.word}${groupWord(group)}${capital(version)}${scope}${resource.kind}${suffix}`,
    description: `${verb.does} of kind ${kind}.`,
    tag: `${group === '' ? 'core' : (group.split('.')[0] ?? group)}_${version}`,
    action: verb.action,
    gvk,
    pathParameters: ['name', 'namespace'].filter(parameter => path.includes(`{${parameter}}`)),
    queryParameters: [PRETTY, ...(QUERY[verb.action] ?? [])],
    body: bodyOf(verb, own),
    answer: answerOf(verb, resource, own),
  };
}

function bodyOf({ action }: Verb, own: { schema: Schema; name: string }): Operation['body'] {
  switch (action) {
    case 'post':
    case 'put':
      return { ...own, contentTypes: ['*/*'] };
    case 'patch':
      return {
        schema: PATCH,
        name: PATCH_NAME,
        contentTypes: own.schema.builtin === undefined ? PATCH_TYPES_OF_CUSTOM : PATCH_TYPES,
      };
    case 'delete':
    case 'deletecollection':
      return { schema: DeleteOptions, name: '', contentTypes: ['*/*'] };
    default:
      return undefined;
  }
}

function answerOf({ action }: Verb, resource: ApiResource, own: { schema: Schema; name: string }): Operation['answer'] {
  if (action === 'list') return { schema: listSchema(resource), name: `${own.name}List` };
  return action.startsWith('delete') ? { schema: Status, name: '' } : own;
}

function listSchema({ group, version, kind, schema }: ApiResource): Schema {
  return {
    type: 'object',
    description: `A list of objects of kind ${kind}.`,
    properties: {
      ...TYPE_META,
      items: { type: 'array', items: named(schema, { group, version, kind }), description: 'The objects.' },
      metadata: { ...ListMeta, description: 'Standard list metadata.' },
    },
    required: ['items'],
    'x-kubernetes-group-version-kind': [{ group, version, kind: `${kind}List` }],
  };
}

/** A custom resource gets a name for the time of publishing, so that its list refers to it instead of repeating it. */
function named(schema: Schema, gvk: GroupVersionKind): Schema {
  if (schema.builtin !== undefined) return schema;
  return { ...schema, builtin: { name: definitionName(gvk, undefined), schema, notEmpty: [] } };
}

function asResource(resource: ApiResource, subresource: ApiSubresource): ApiResource {
  return {
    ...resource,
    group: subresource.group ?? resource.group,
    version: subresource.version ?? resource.version,
    kind: subresource.kind ?? resource.kind,
    schema: subresource.schema ?? resource.schema,
  };
}

/** `rbac.authorization.k8s.io` is `RbacAuthorization` in names of operations. */
function groupWord(group: string): string {
  return group === ''
    ? 'Core'
    : group
        .replace(/\.k8s\.io$/, '')
        .split(/[.-]/)
        .map(capital)
        .join('');
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
