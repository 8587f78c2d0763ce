import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { builtinKinds, builtinSchema } from './builtin.ts';
import type { Schema } from './schema.ts';

/** The fields of every interface in a type file of `kubernetes-types`. */
function interfacesIn(file: string): Map<string, string[]> {
  const path = fileURLToPath(import.meta.resolve(`kubernetes-types/${file}.d.ts`));
  const source = readFileSync(path, 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '');
  const found = new Map<string, string[]>();
  for (const [, name = '', body = ''] of source.matchAll(/export interface (\w+) \{([\s\S]*?)\n\}/g)) {
    found.set(
      name,
      [...body.matchAll(/^\s+"?([\w$-]+)"?\??:/gm)].map(([, field = '']) => field),
    );
  }
  return found;
}

const FILES: Readonly<Record<string, string>> = {
  'io.k8s.api.core.v1': 'core/v1',
  'io.k8s.api.apps.v1': 'apps/v1',
  'io.k8s.api.batch.v1': 'batch/v1',
  'io.k8s.api.policy.v1': 'policy/v1',
  'io.k8s.api.rbac.v1': 'rbac/v1',
  'io.k8s.api.coordination.v1': 'coordination/v1',
  'io.k8s.api.certificates.v1': 'certificates/v1',
  'io.k8s.api.authentication.v1': 'authentication/v1',
  'io.k8s.api.authorization.v1': 'authorization/v1',
  'io.k8s.api.events.v1': 'events/v1',
  'io.k8s.api.scheduling.v1': 'scheduling/v1',
  'io.k8s.api.discovery.v1': 'discovery/v1',
  'io.k8s.api.autoscaling.v1': 'autoscaling/v1',
  'io.k8s.apimachinery.pkg.apis.meta.v1': 'meta/v1',
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1': 'apiextensions/v1',
};

/** Fields of alpha versions that were taken back since. */
const TAKEN_BACK = new Set(['io.k8s.api.core.v1.PodResourceClaim.source']);

/** Every named type that the kinds use. */
function allTypes(): Map<string, Schema> {
  const types = new Map<string, Schema>();
  const visit = (schema: Schema) => {
    if (schema.builtin !== undefined) {
      if (types.has(schema.builtin.name)) return;
      types.set(schema.builtin.name, schema.builtin.schema);
    }
    for (const child of Object.values(schema.properties ?? {})) visit(child);
    if (schema.items !== undefined) visit(schema.items);
    if (typeof schema.additionalProperties === 'object') visit(schema.additionalProperties);
  };
  for (const { apiVersion, kind } of builtinKinds()) visit(builtinSchema(apiVersion, kind) as Schema);
  return types;
}

describe('built-in kinds', () => {
  test('are found by version and kind', () => {
    assert.equal(builtinSchema('apps/v1', 'Deployment')?.['x-kubernetes-group-version-kind']?.[0]?.kind, 'Deployment');
    assert.equal(builtinSchema('v1', 'Deployment'), undefined);
    assert.ok(builtinKinds().length >= 40);
  });

  test('have every field that the published types have', () => {
    const files = new Map(Object.values(FILES).map(file => [file, interfacesIn(file)]));
    let compared = 0;
    for (const [name, schema] of allTypes()) {
      const dot = name.lastIndexOf('.');
      const fields = files.get(FILES[name.slice(0, dot)] ?? '')?.get(name.slice(dot + 1));
      if (fields === undefined || schema.properties === undefined) continue;
      compared++;
      for (const field of fields) {
        if (TAKEN_BACK.has(`${name}.${field}`)) continue;
        assert.ok(Object.hasOwn(schema.properties, field), `${name} lacks ${field}`);
      }
    }
    assert.ok(compared > 250, `only ${compared} types were compared`);
  });

  test('describe every type and every field', () => {
    for (const [name, schema] of allTypes()) {
      assert.ok(schema.description, name);
      for (const [field, child] of Object.entries(schema.properties ?? {}))
        assert.ok(child.description, `${name}.${field}`);
    }
  });

  test('lists with keys have elements with those fields, and required fields exist', () => {
    for (const [name, schema] of allTypes()) {
      for (const field of schema.required ?? []) assert.ok(schema.properties?.[field], `${name}.${field}`);
      for (const [field, child] of Object.entries(schema.properties ?? {})) {
        for (const key of child['x-kubernetes-list-map-keys'] ?? []) {
          assert.ok(child.items?.properties?.[key], `${name}.${field} by ${key}`);
        }
        if (child.enum !== undefined && child.default !== undefined)
          assert.ok(child.enum.includes(child.default), `${name}.${field}`);
      }
    }
  });

  test('merge keys are those of upstream where they matter most', () => {
    const spec = builtinSchema('v1', 'Pod')?.properties?.['spec'];
    const container = spec?.properties?.['containers']?.items;
    assert.deepEqual(
      ['containers', 'volumes', 'imagePullSecrets', 'hostAliases', 'topologySpreadConstraints'].map(
        field => spec?.properties?.[field]?.['x-kubernetes-patch-merge-key'],
      ),
      ['name', 'name', 'name', 'ip', 'topologyKey'],
    );
    assert.deepEqual(
      ['env', 'ports', 'volumeMounts', 'volumeDevices'].map(
        field => container?.properties?.[field]?.['x-kubernetes-patch-merge-key'],
      ),
      ['name', 'containerPort', 'mountPath', 'devicePath'],
    );
    assert.deepEqual(container?.properties?.['ports']?.['x-kubernetes-list-map-keys'], ['containerPort', 'protocol']);
  });
});
