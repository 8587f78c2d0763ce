import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container } from 'kubernetes-types/core/v1.d.ts';
import { containerEnv, type EnvSources, expand } from './container-env.ts';

const SOURCES: EnvSources = {
  pod: {
    metadata: { name: 'p', namespace: 'ns', uid: 'u', labels: { 'a.b/c': 'label' } },
    spec: { containers: [], serviceAccountName: 'sa' },
  },
  nodeName: 'm0',
  address: '127.2.3.10',
  secret: async name => (name === 's' ? { data: { k: Buffer.from('secret').toString('base64') } } : undefined),
  configMap: async name => (name === 'c' ? { data: { k: 'config' } } : undefined),
};
const env = (container: Partial<Container>) => containerEnv({ name: 'x', ...container }, SOURCES);

test('variables from values, fields, Secrets and ConfigMaps', async () => {
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  assert.deepEqual(
    await env({
      envFrom: [
        { prefix: 'S_', secretRef: { name: 's' } },
        { configMapRef: { name: 'c' } },
        { configMapRef: { name: 'none', optional: true } },
      ],
      env: [
        field('NAME', 'metadata.name'),
        field('LABEL', "metadata.labels['a.b/c']"),
        field('IP', 'status.hostIP'),
        field('ACCOUNT', 'spec.serviceAccountName'),
        { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
        { name: 'GONE', valueFrom: { configMapKeyRef: { name: 'c', key: 'none', optional: true } } },
        { name: 'SUM', value: '$(NAME)-$(KEY)' },
      ],
    }),
    {
      S_k: 'secret',
      k: 'config',
      NAME: 'p',
      LABEL: 'label',
      IP: '127.2.3.10',
      ACCOUNT: 'sa',
      KEY: 'secret',
      SUM: 'p-secret',
    },
  );
});

test('what is required and missing is named', async () => {
  await assert.rejects(env({ envFrom: [{ secretRef: { name: 'none' } }] }), /secret "none" not found/);
  await assert.rejects(
    env({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'x' } } }] }),
    /key "x" in secret "s" not found/,
  );
  await assert.rejects(
    env({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.nothing' } } }] }),
    /variable A: there is no field spec.nothing/,
  );
});

test('references in a text', () => {
  const known = { A: 'x', B_2: '$(A)' };
  assert.equal(expand('$(A) $(B_2) $(C) $$(A) $A $$ $', known), 'x $(A) $(C) $(A) $A $ $');
});
