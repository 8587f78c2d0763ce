import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import { defaultCrd } from './crd.ts';
import type { JsonObject } from './schema.ts';

/** For tests: a good definition, with a schema below `spec` and other changes. */
export function exampleCrd(spec: JsonObject = {}, change: JsonObject = {}): CustomResourceDefinition {
  const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'object', ...spec } } };
  return defaultCrd({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'crontabs.stable.example.com' },
    spec: {
      group: 'stable.example.com',
      scope: 'Namespaced',
      names: { plural: 'crontabs', kind: 'CronTab', shortNames: ['ct'] },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
      ...change,
    },
  } as unknown as CustomResourceDefinition);
}
