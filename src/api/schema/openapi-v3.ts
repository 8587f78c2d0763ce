import { createHash } from 'node:crypto';
import { type ApiResource, type GroupVersion, groupVersionPath } from './api-resource.ts';
import { Definitions } from './openapi-definitions.ts';
import { type Operation, operationsOf } from './openapi-paths.ts';

/** The document at `/openapi/v3`: where the document of each group version is, with a hash to cache it by. */
export function openApiV3Index(documents: readonly { groupVersion: GroupVersion; document: object }[]): object {
  const entries = documents.map(({ groupVersion, document }) => {
    const path = groupVersionPath(groupVersion);
    return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${openApiHash(document)}` }];
  });
  return { paths: Object.fromEntries(entries) };
}

/** The hash of a document, upper-case hexadecimal, as it stands in the index and in the ETag. */
export function openApiHash(document: object): string {
  return createHash('sha512').update(JSON.stringify(document)).digest('hex').toUpperCase();
}

/** The document at `/openapi/v3/<api/v1 | apis/group/version>`: all paths and all types of one group version. */
export function openApiV3(groupVersion: GroupVersion, resources: readonly ApiResource[]): object {
  const definitions = new Definitions('v3');
  const paths: Record<string, Record<string, unknown>> = {};
  for (const resource of resources) {
    if (resource.group !== groupVersion.group || resource.version !== groupVersion.version) continue;
    for (const operation of operationsOf(resource)) {
      const item = (paths[operation.path] ??= { parameters: operation.pathParameters.map(pathParameter) });
      item[operation.method] = published(operation, definitions);
    }
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Rotunda', version: groupVersion.version },
    paths,
    components: { schemas: definitions.all() },
  };
}

const ANSWER_TYPES = ['application/json', 'application/yaml'];

function published(operation: Operation, definitions: Definitions): object {
  const { body, answer } = operation;
  const answered = definitions.refer(answer.schema, answer.name);
  const success = { description: 'OK', content: contents(ANSWER_TYPES, answered) };
  return {
    tags: [operation.tag],
    description: operation.description,
    operationId: operation.id,
    parameters: operation.queryParameters.map(({ name, type, description }) => ({
      name,
      in: 'query',
      description,
      schema: { type, uniqueItems: true },
    })),
    ...(body === undefined
      ? {}
      : { requestBody: { content: contents(body.contentTypes, definitions.refer(body.schema, body.name)) } }),
    responses: {
      200: success,
      ...(operation.method === 'post' || operation.method === 'put'
        ? { 201: { ...success, description: 'Created' } }
        : {}),
      401: { description: 'Unauthorized' },
    },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': operation.gvk,
  };
}

function contents(types: readonly string[], schema: object): object {
  return Object.fromEntries(types.map(type => [type, { schema }]));
}

function pathParameter(name: string): object {
  const description = name === 'name' ? 'Name of the object.' : 'Namespace of the object.';
  return { name, in: 'path', required: true, description, schema: { type: 'string', uniqueItems: true } };
}
