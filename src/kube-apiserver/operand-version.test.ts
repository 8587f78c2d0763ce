import assert from 'node:assert/strict';
import { test } from 'node:test';
import { versionOfImage } from './operand-version.ts';

for (const [image, version] of [
  ['registry.example.com:5000/kube-apiserver:v1.36.3', '1.36.3'],
  ['kube-apiserver:1.29.0-rc.1', '1.29.0-rc.1'],
  ['kube-apiserver:v1.36.3@sha256:0123', '1.36.3'],
  ['kube-apiserver', undefined],
  ['registry.example.com:5000/kube-apiserver', undefined],
  ['kube-apiserver:latest', undefined],
  ['kube-apiserver@sha256:0123', undefined],
  ['kube-apiserver:v2.0.0', undefined],
] as const) {
  test(`${image} has ${version ?? 'no version'}`, () => assert.equal(versionOfImage(image), version));
}
