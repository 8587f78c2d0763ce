import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ApiResource } from './api-resource.ts';
import { builtinSchema } from './builtin.ts';
import { openApiV2 } from './openapi-v2.ts';
import { encodeOpenApiV2 } from './openapi-v2-protobuf.ts';
import { openApiV3, openApiV3Index } from './openapi-v3.ts';
import type { Schema } from './schema.ts';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

const PODS: ApiResource = {
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
  verbs: VERBS,
  schema: builtinSchema('v1', 'Pod') as Schema,
  subresources: [
    { name: 'status', verbs: ['get', 'patch', 'update'] },
    {
      name: 'eviction',
      verbs: ['create'],
      group: 'policy',
      kind: 'Eviction',
      schema: builtinSchema('policy/v1', 'Eviction'),
    },
  ],
};
const NODES: ApiResource = {
  ...PODS,
  kind: 'Node',
  plural: 'nodes',
  namespaced: false,
  schema: builtinSchema('v1', 'Node') as Schema,
};
const CRON_TABS: ApiResource = {
  group: 'stable.example.com',
  version: 'v1',
  kind: 'CronTab',
  plural: 'crontabs',
  namespaced: true,
  verbs: VERBS,
  schema: {
    type: 'object',
    properties: {
      spec: { type: 'object', nullable: true, properties: { f: { type: 'string', oneOf: [{ minLength: 1 }] } } },
    },
    'x-kubernetes-group-version-kind': [{ group: 'stable.example.com', version: 'v1', kind: 'CronTab' }],
  },
};
const REVIEWS: ApiResource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
  verbs: ['create'],
  schema: builtinSchema('authorization.k8s.io/v1', 'SelfSubjectAccessReview') as Schema,
};

interface Document {
  paths: Record<
    string,
    Record<string, { parameters?: { name: string }[]; operationId: string } & Record<string, unknown>>
  >;
  components: { schemas: Record<string, Record<string, unknown>> };
  definitions: Record<string, Record<string, unknown>>;
}

/** Every `$ref` in a document. */
function references(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) =>
    key === '$ref' && typeof child === 'string' ? [child] : references(child),
  );
}

describe('OpenAPI v3', () => {
  const core = openApiV3({ group: '', version: 'v1' }, [PODS, NODES, CRON_TABS]) as Document;

  test('has the paths of its group version and no others', () => {
    assert.deepEqual(Object.keys(core.paths), [
      '/api/v1/namespaces/{namespace}/pods',
      '/api/v1/namespaces/{namespace}/pods/{name}',
      '/api/v1/pods',
      '/api/v1/namespaces/{namespace}/pods/{name}/status',
      '/api/v1/namespaces/{namespace}/pods/{name}/eviction',
      '/api/v1/nodes',
      '/api/v1/nodes/{name}',
      '/api/v1/nodes/{name}/status',
      '/api/v1/nodes/{name}/eviction',
    ]);
  });

  test('lets kubectl find out that the server validates fields', () => {
    const patch = core.paths['/api/v1/namespaces/{namespace}/pods/{name}']?.['patch'];
    assert.deepEqual(patch?.['x-kubernetes-group-version-kind'], { group: '', version: 'v1', kind: 'Pod' });
    const names = patch?.parameters?.map(({ name }) => name) ?? [];
    for (const name of ['fieldValidation', 'dryRun', 'fieldManager', 'force']) assert.ok(names.includes(name), name);
  });

  test('offers strategic patches for our own kinds only, so that kubectl apply sends others none', () => {
    const custom = openApiV3(CRON_TABS, [CRON_TABS]) as Document;
    const patchOf = ({ paths }: Document, plural: string) =>
      JSON.stringify(Object.entries(paths).find(([path]) => path.endsWith(`/${plural}/{name}`))?.[1]['patch']);
    assert.match(patchOf(core, 'pods'), /strategic-merge-patch/);
    assert.match(patchOf(custom, 'crontabs'), /merge-patch/);
    assert.doesNotMatch(patchOf(custom, 'crontabs'), /strategic/);
  });

  test('lets kubectl explain find the kind and its types', () => {
    const pod = core.components.schemas['io.k8s.api.core.v1.Pod'];
    assert.deepEqual(pod?.['x-kubernetes-group-version-kind'], [{ group: '', version: 'v1', kind: 'Pod' }]);
    assert.deepEqual((pod?.['properties'] as Record<string, unknown> | undefined)?.['spec'], {
      description: 'What is wanted.',
      allOf: [{ $ref: '#/components/schemas/io.k8s.api.core.v1.PodSpec' }],
    });
  });

  test('refers only to what it has, and names every operation once', () => {
    for (const reference of references(core)) {
      assert.ok(core.components.schemas[reference.replace('#/components/schemas/', '')], reference);
    }
    const ids = Object.values(core.paths).flatMap(item =>
      Object.values(item).flatMap(({ operationId }) => operationId ?? []),
    );
    assert.equal(new Set(ids).size, ids.length);
  });

  test('publishes nothing of our own bookkeeping', () => {
    assert.doesNotMatch(JSON.stringify(core), /"builtin"|"notEmpty"/);
  });

  test('publishes a custom resource once, and its list by reference', () => {
    const document = openApiV3({ group: 'stable.example.com', version: 'v1' }, [CRON_TABS]) as Document;
    const name = 'com.example.stable.v1.CronTab';
    assert.ok(document.components.schemas[name]);
    const list = document.components.schemas[`${name}List`]?.['properties'] as { items: { items: unknown } };
    assert.deepEqual(list.items.items, { $ref: `#/components/schemas/${name}` });
  });

  test('the index changes when a document changes', () => {
    const groupVersion = { group: 'stable.example.com', version: 'v1' };
    const url = (resources: ApiResource[]) =>
      (
        openApiV3Index([{ groupVersion, document: openApiV3(groupVersion, resources) }]) as {
          paths: Record<string, { serverRelativeURL: string }>;
        }
      ).paths['apis/stable.example.com/v1']?.serverRelativeURL;
    assert.match(url([CRON_TABS]) ?? '', /^\/openapi\/v3\/apis\/stable\.example\.com\/v1\?hash=[0-9A-F]{128}$/);
    assert.notEqual(url([CRON_TABS]), url([]));
  });
});

describe('OpenAPI v2', () => {
  const document = openApiV2([PODS, NODES, CRON_TABS, REVIEWS]) as Document;

  test('has everything in one document', () => {
    assert.ok(document.paths['/apis/authorization.k8s.io/v1/selfsubjectaccessreviews']?.['post']);
    for (const reference of references(document))
      assert.ok(document.definitions[reference.replace('#/definitions/', '')], reference);
  });

  test('has no alternatives and no null', () => {
    const text = JSON.stringify(document.definitions);
    assert.doesNotMatch(text, /"(oneOf|anyOf|allOf|not|nullable)":[^{]/);
    assert.equal(document.definitions['io.k8s.apimachinery.pkg.api.resource.Quantity']?.['type'], 'string');
    assert.equal(document.definitions['io.k8s.apimachinery.pkg.util.intstr.IntOrString']?.['format'], 'int-or-string');
    const fields = document.definitions['com.example.stable.v1.CronTab']?.['properties'];
    const { spec } = fields as Record<string, Record<string, unknown>>;
    assert.equal(spec?.['type'], undefined, 'a nullable field has no type');
  });

  test('as protobuf is a message whose lengths add up', () => {
    const bytes = Buffer.from(encodeOpenApiV2(document));
    const fields = topLevel(bytes);
    assert.deepEqual(
      fields.map(({ number }) => number),
      [1, 2, 8, 9],
    );
    assert.equal(fields[0]?.content.toString(), '2.0');
    const definitions = topLevel(fields[3]?.content ?? Buffer.alloc(0));
    assert.equal(definitions.length, Object.keys(document.definitions).length);
    assert.equal(
      topLevel(definitions[0]?.content ?? Buffer.alloc(0))[0]?.content.toString(),
      Object.keys(document.definitions)[0],
    );
  });
});

/** The length-delimited fields of a protobuf message. */
function topLevel(bytes: Buffer): { number: number; content: Buffer }[] {
  const fields: { number: number; content: Buffer }[] = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    assert.equal(tag % 8, 2);
    const length = varint();
    fields.push({ number: Math.floor(tag / 8), content: bytes.subarray(at, at + length) });
    at += length;
  }
  assert.equal(at, bytes.length);
  return fields;
}
