import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

/** Which rooms a room may import from; DESIGN's "imports go downwards". A room that is not listed may not exist. */
const ALLOWED: Record<string, readonly string[]> = {
  pki: [],
  kube: [],
  controller: ['kube'],
  certrotation: ['pki', 'kube', 'controller'],
  trust: ['pki', 'kube'],
  'hand-over': ['pki', 'kube', 'controller', 'certrotation', 'trust'],
  staticpod: ['pki', 'kube', 'controller'],
  'kube-apiserver': ['pki', 'kube', 'controller', 'certrotation', 'trust', 'hand-over', 'staticpod'],
  etcd: ['pki', 'kube', 'controller', 'certrotation', 'trust', 'hand-over', 'staticpod'],
  'machine-config-api': ['kube', 'controller'],
  host: ['kube', 'machine-config-api'],
  kubeadm: ['pki', 'kube', 'controller', 'certrotation', 'trust', 'hand-over', 'host'],
  'machine-config': ['pki', 'kube', 'controller', 'certrotation', 'trust', 'staticpod', 'machine-config-api'],
  daemon: ['pki', 'kube', 'controller', 'certrotation', 'trust', 'staticpod', 'machine-config-api', 'host'],
  api: ['pki', 'kube'],
  twin: [
    'pki',
    'kube',
    'controller',
    'certrotation',
    'trust',
    'hand-over',
    'staticpod',
    'kube-apiserver',
    'etcd',
    'kubeadm',
    'machine-config-api',
    'machine-config',
    'daemon',
    'host',
  ],
  inventory: [
    'pki',
    'kube',
    'certrotation',
    'trust',
    'hand-over',
    'staticpod',
    'kube-apiserver',
    'etcd',
    'machine-config-api',
  ],
  forecast: [
    'pki',
    'kube',
    'controller',
    'certrotation',
    'trust',
    'hand-over',
    'staticpod',
    'kube-apiserver',
    'etcd',
    'kubeadm',
    'machine-config-api',
    'machine-config',
    'inventory',
    'twin',
  ],
  local: ['*'],
  cli: ['*'],
};

const root = new URL('../../', import.meta.url).pathname;

test('imports go downwards: every room imports only from the rooms below it', () => {
  const wrong: string[] = [];
  for (const { file, target } of imports()) {
    const [room, other] = [roomOf(file), roomOf(target)];
    // A test may use the real thing from a room above instead of a double.
    if (room === other || file.endsWith('.test.ts') || !target.startsWith('src/')) continue;
    const allowed = ALLOWED[room];
    if (allowed === undefined) wrong.push(`${file}: room ${room} is not in the design`);
    else if (!allowed.includes('*') && !allowed.includes(other)) wrong.push(`${file} imports ${target}`);
  }
  assert.deepEqual(wrong, []);
});

test('nothing imports local or cli', () => {
  const wrong = imports().filter(
    ({ file, target }) => ['local', 'cli'].includes(roomOf(target)) && !['local', 'cli'].includes(roomOf(file)),
  );
  assert.deepEqual(wrong, []);
});

test('every room has a README', () => {
  const rooms = new Set(globSync('src/*/*.ts', { cwd: root }).map(roomOf));
  const readmes = new Set(globSync('src/*/README.md', { cwd: root }).map(roomOf));
  assert.deepEqual([...rooms.difference(readmes)], []);
});

test('tests beside the code share a process, so no file sets a hook that would run around the tests of all others', () => {
  const files = globSync(['src/**/*.test.ts', 'test/vectors/*.test.ts'], { cwd: root });
  const wrong = files.filter(file => /^(beforeEach|afterEach)\(/m.test(readFileSync(join(root, file), 'utf8')));
  assert.deepEqual(wrong, []);
});

function imports(): { file: string; target: string }[] {
  return globSync('src/**/*.ts', { cwd: root }).flatMap(file => {
    const text = readFileSync(join(root, file), 'utf8');
    const found = text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g);
    return [...found].map(match => ({ file, target: normalize(join(dirname(file), match[1] as string)) }));
  });
}

function roomOf(path: string): string {
  return path.split('/')[1] ?? '';
}
