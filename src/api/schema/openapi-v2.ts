import type { ApiResource } from './api-resource.ts';
import { Definitions } from './openapi-definitions.ts';
import { type Operation, operationsOf } from './openapi-paths.ts';

/** The document at `/openapi/v2`: everything in one, for clients older than OpenAPI v3. */
export function openApiV2(resources: readonly ApiResource[]): object {
  const definitions = new Definitions('v2');
  const paths: Record<string, Record<string, unknown>> = {};
  for (const resource of resources) {
    for (const operation of operationsOf(resource)) {
      const item = (paths[operation.path] ??= { parameters: operation.pathParameters.map(pathParameter) });
      item[operation.method] = published(operation, definitions);
    }
  }
  return { swagger: '2.0', info: { title: 'Rotunda', version: 'unversioned' }, paths, definitions: definitions.all() };
}

const ANSWER_TYPES = ['application/json', 'application/yaml'];

function published(operation: Operation, definitions: Definitions): object {
  const { body, answer } = operation;
  const success = { description: 'OK', schema: definitions.refer(answer.schema, answer.name) };
  const parameters: object[] = operation.queryParameters.map(({ name, type, description }) => ({
    name,
    in: 'query',
    description,
    type,
    uniqueItems: true,
  }));
  if (body !== undefined) {
    const required = operation.method !== 'delete';
    parameters.unshift({ name: 'body', in: 'body', required, schema: definitions.refer(body.schema, body.name) });
  }
  return {
    tags: [operation.tag],
    description: operation.description,
    operationId: operation.id,
    consumes: body?.contentTypes ?? ['*/*'],
    produces: ANSWER_TYPES,
    schemes: ['https'],
    parameters,
    responses: { 200: success, 401: { description: 'Unauthorized' } },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': operation.gvk,
  };
}

function pathParameter(name: string): object {
  const description = name === 'name' ? 'Name of the object.' : 'Namespace of the object.';
  return { name, in: 'path', required: true, description, type: 'string', uniqueItems: true };
}
