import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { needsUid, readManifest } from './manifest.ts';

describe('kubelets that need to be given the identity of a pod (spec 30, 10.3.11)', () => {
  for (const [version, expected] of [
    ['v1.22.9', true],
    ['1.22.9+abc', true],
    ['v1.23.0-alpha.1', true],
    ['v1.23.0-rc.1+abc', true],
    ['v1.23.0', false],
    ['1.23.0+abc-dirty', false],
    ['v1.23.0+a-b', false],
    ['v1.29.4', false],
    ['1.022.0', false],
    ['1.22', false],
    ['', false],
  ] as const) {
    test(`"${version}": ${expected}`, () => assert.equal(needsUid(version), expected));
  }
});

test('a manifest is read as the kubelet reads it', () => {
  const text = 'kind: Pod\nmetadata: {name: a}\nspec: {hostNetwork: yes, volumes: [{secret: {defaultMode: 0644}}]}\n';
  const { spec } = readManifest(text, 'here');
  assert.deepEqual(spec, { hostNetwork: true, volumes: [{ secret: { defaultMode: 0o644 } }] });
});
