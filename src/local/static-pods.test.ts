import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../kube/clock.ts';
import { ManifestDirectory, type StaticPod, staticPodOf } from './static-pods.ts';

const manifest = (changes: object = {}) =>
  JSON.stringify({
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'ns', uid: 'x', ...changes },
    spec: { containers: [{ name: 'c' }] },
  });

test('a manifest on a node', () => {
  const { pod, hash } = staticPodOf(manifest(), 'web.yaml', 'm0');
  assert.equal(pod.metadata?.name, 'web-m0');
  assert.equal(pod.metadata?.uid, hash);
  assert.equal(pod.spec?.nodeName, 'm0');
  assert.deepEqual(pod.metadata?.annotations, {
    'kubernetes.io/config.source': 'file',
    'kubernetes.io/config.hash': hash,
  });
  assert.equal(staticPodOf(manifest(), 'web.yaml', 'm0').hash, hash);
  for (const other of [
    staticPodOf(manifest({ labels: { a: 'b' } }), 'web.yaml', 'm0'),
    staticPodOf(manifest(), 'web.yaml', 'm1'),
  ]) {
    assert.notEqual(other.hash, hash);
  }
});

test('a manifest that is no pod says why', () => {
  const cases: [string, RegExp][] = [
    ['a: [1', /x.yaml is not YAML/],
    ['', /x.yaml is not YAML: expected a document/],
    ['kind: Service', /expected a Pod, found kind "Service"/],
    ['{kind: Pod, metadata: {}}', /expected metadata.name, found none/],
    ['{kind: Pod, metadata: {name: web}}', /expected containers, found none/],
    [
      '{kind: Pod, metadata: {name: web}, spec: {containers: [{name: ../../etc}]}}',
      /expected a DNS label as name of a container, found "..\/..\/etc"/,
    ],
    [
      '{kind: Pod, metadata: {name: ../web}, spec: {containers: [{name: c}]}}',
      /expected names of a pod and a namespace/,
    ],
    ['{kind: Pod, metadata: {name: web, namespace: a/b}, spec: {containers: [{name: c}]}}', /found "a\/b"/],
  ];
  for (const [text, expected] of cases) assert.throws(() => staticPodOf(text, 'x.yaml', 'm0'), expected, text);
});

test('a directory of manifests: what is there, what is broken, what stays', t => {
  const directory = mkdtempSync(join(tmpdir(), 'rotunda-manifests-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  let pods: readonly StaticPod[] = [];
  const broken: string[] = [];
  const source = new ManifestDirectory(directory, 'm0', new VirtualClock('2026-01-01T00:00:00Z'), {
    pods: found => {
      pods = found;
    },
    broken: (file, message) => broken.push(`${file}: ${message}`),
  });
  const names = () => {
    source.scan();
    return pods.map(({ pod }) => pod.metadata?.name);
  };
  const write = (file: string, text: string) => writeFileSync(join(directory, file), text);
  assert.deepEqual(names(), []);
  write('a.yaml', manifest());
  write('.a.yaml.tmp-1', manifest({ name: 'hidden' }));
  assert.deepEqual(names(), ['web-m0']);
  const before = pods[0]?.hash;
  write('a.yaml', 'broken: [');
  assert.deepEqual(names(), ['web-m0']);
  assert.equal(pods[0]?.hash, before, 'the last good one stays');
  assert.deepEqual(names(), ['web-m0']);
  assert.equal(broken.length, 1, 'told once');
  write('b.yaml', manifest());
  assert.deepEqual(names(), ['web-m0']);
  assert.match(broken[1] ?? '', /^b.yaml: the pod ns\/web-m0 is defined in a.yaml already$/);
  rmSync(join(directory, 'a.yaml'));
  assert.deepEqual(names(), ['web-m0']);
  assert.equal(pods[0]?.file, 'b.yaml');
});

test('a directory that nobody may watch is looked at every second', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'rotunda-manifests-'));
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  let pods: readonly StaticPod[] = [];
  const full = () => {
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
  };
  const source = new ManifestDirectory(
    directory,
    'm0',
    clock,
    { pods: found => (pods = found), broken: () => {} },
    full,
  );
  t.after(() => {
    source.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  source.start();
  writeFileSync(join(directory, 'a.yaml'), manifest());
  assert.equal(pods.length, 0);
  await clock.advanceTo(new Date('2026-01-01T00:00:01Z'));
  assert.equal(pods.length, 1);
});
