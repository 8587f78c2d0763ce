import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PathMap } from './path-map.ts';

const MAP = new PathMap([
  { inside: '/etc/kubernetes/', outside: '/n/etc/kubernetes' },
  { inside: '/etc/kubernetes/static-pod-certs', outside: '/n/certs/' },
  { inside: '/', outside: '/never' },
]);

test('a path is where its longest mount is', () => {
  assert.equal(MAP.outside('/etc/kubernetes'), '/n/etc/kubernetes');
  assert.equal(MAP.outside('/etc/kubernetes/manifests/x.yaml'), '/n/etc/kubernetes/manifests/x.yaml');
  assert.equal(MAP.outside('/etc/kubernetes/static-pod-certs/secrets/a/tls.crt'), '/n/certs/secrets/a/tls.crt');
  assert.equal(MAP.outside('/etc/kubernetes/../kubernetes/a'), '/n/etc/kubernetes/a');
  for (const other of ['/etc/kubernetes2', '/etc', '/', 'relative', '', '/host/etc/kubernetes'])
    assert.equal(MAP.outside(other), other);
});

test('mentions in a text are translated, and nothing else', () => {
  const cases: [string, string][] = [
    ['--dir=/etc/kubernetes/manifests', '--dir=/n/etc/kubernetes/manifests'],
    ['/etc/kubernetes/', '/n/etc/kubernetes/'],
    ['a,/etc/kubernetes/a:/etc/kubernetes/static-pod-certs/b', 'a,/n/etc/kubernetes/a:/n/certs/b'],
    ['exec {fd}>/etc/kubernetes/.lock', 'exec {fd}>/n/etc/kubernetes/.lock'],
    ['if [ -f "/etc/kubernetes/x" ]; then', 'if [ -f "/n/etc/kubernetes/x" ]; then'],
    ['/host/etc/kubernetes/x', '/host/etc/kubernetes/x'],
    ['/etc/kubernetes-old/x', '/etc/kubernetes-old/x'],
    ['/etc/kubernetes.d', '/etc/kubernetes.d'],
    ['https://host/etc/kubernetes', 'https://host/etc/kubernetes'],
  ];
  for (const [text, expected] of cases) assert.equal(MAP.rewrite(text), expected, text);
});

test('translating twice is translating once, and the map survives its way through the environment', () => {
  const word = fc.constantFrom(
    '/etc/kubernetes',
    '/x',
    ' ',
    '=',
    '/etc/kubernetes/static-pod-certs',
    'a',
    '.',
    '"',
    ':',
    '\n',
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 8 }), words => {
      const once = MAP.rewrite(words.join(''));
      assert.equal(MAP.rewrite(once), once);
      assert.equal(PathMap.fromEnv({ ROTUNDA_PATH_MAP: MAP.toEnv() }).rewrite(words.join('')), once);
    }),
  );
  assert.equal(PathMap.fromEnv({}).rewrite('/etc/kubernetes'), '/etc/kubernetes');
});
