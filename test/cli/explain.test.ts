import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import type { Explanation } from '../../src/inventory/explain.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';

const root = new URL('../..', import.meta.url).pathname;
const example = join(root, 'docs/examples/control-plane.yaml');
const folder = mkdtempSync(join(tmpdir(), 'rotunda-explain-'));
after(() => rmSync(folder, { recursive: true }));

describe('rotunda explain', () => {
  test('judges the example as the controllers would, in every format', () => {
    const now = ['--now', '2026-11-15T00:00:00Z'];
    const json = run(['explain', '-f', example, ...now, '-o', 'json']);
    const explanations = JSON.parse(json.stdout) as Explanation[];
    assert.deepEqual([json.status, explanations.length], [0, 28]);
    const due = explanations.filter(({ action }) => action !== 'keep');
    assert.deepEqual(
      due.map(({ name, rule }) => [name, rule]),
      [['aggregator-client', 'T-4']],
    );
    const signer = explanations.find(({ name }) => name === 'kube-control-plane-signer');
    assert.deepEqual([signer?.until, signer?.rule], ['2026-11-30T07:59:57.001Z', 'S-5']);
    assert.match(
      run(['explain', '-f', example, ...now]).stdout,
      /^ROLE +NAMESPACE +NAME +DECISION +CHANGES +RULE +REASON\n/,
    );
    assert.match(run(['explain', '-f', example, ...now, '-o', 'yaml']).stdout, /^- role: signer\n/);
    assert.match(run(['explain', '-f', example, ...now, '-o', 'wide']).stdout, / REASON +NOTES\n/);
    assert.match(run(['explain', '-f', example, ...now, '-o', 'name']).stdout, /^secret\/[a-z-]+\n/);
    assert.match(run(['explain', '-f', example, ...now, '-o', 'jsonpath={[*].role}']).stdout, /^signer /);
    assert.match(
      run(['explain', '-f', example, ...now, '-o', 'custom-columns=NAME:.name,RULE:.rule']).stdout,
      /^NAME +RULE\n[a-z-]+ +S-5\n/,
    );
  });

  test('asked at the moment it named, it gives the answer it named', () => {
    const [first] = JSON.parse(
      run(['explain', '-f', example, '--now', '2026-11-15T00:00:00Z', '-o', 'json']).stdout,
    ) as [Explanation];
    const at = (time: string) =>
      (JSON.parse(run(['explain', '-f', example, '--now', time, '-o', 'json']).stdout) as [Explanation])[0];
    assert.equal(at(new Date(Date.parse(first.until!) - 1).toISOString()).action, 'keep');
    assert.deepEqual([at(first.until!).action, at(first.until!).reason], ['regenerate', first.reason]);
  });

  test('reads a must-gather folder past what it cannot use, links included', () => {
    const deep = join(folder, 'must-gather/namespaces/x/core');
    mkdirSync(deep, { recursive: true });
    writeFileSync(
      join(deep, 'secrets.yaml'),
      'apiVersion: v1\nkind: SecretList\nitems:\n- kind: Secret\n  metadata: {name: s, namespace: x, annotations: {auth.openshift.io/certificate-not-after: "2108-02-30T00:00:00Z"}}\n',
    );
    writeFileSync(join(deep, 'broken.yaml'), 'a: [');
    writeFileSync(join(deep, 'pods.json'), '{"kind":"PodList","items":[{"kind":"Pod","metadata":{"name":"p"}}]}');
    writeFileSync(join(deep, 'audit.log'), 'not yaml');
    symlinkSync('/', join(deep, 'root'));
    const { status, stdout, stderr } = run(['explain', '-f', join(folder, 'must-gather')]);
    assert.equal(status, 0);
    assert.match(stdout, /target +x +s +regenerate +now +D-2 +bad expiry: "2108-02-30T00:00:00Z"/);
    assert.match(stderr, /warning: cannot read .*broken.yaml: /);
    assert.match(stderr, /1 other objects passed over/);
  });

  test('an object that needs a person gives exit code 1', () => {
    const file = join(folder, 'bundle.json');
    writeFileSync(
      file,
      JSON.stringify({
        kind: 'ConfigMap',
        metadata: { name: 'b', namespace: 'x', labels: { 'auth.openshift.io/managed-certificate-type': 'ca-bundle' } },
        data: { 'ca-bundle.crt': 'garbage' },
      }),
    );
    const { status, stdout } = run(['explain', '-f', file]);
    assert.equal(status, 1);
    assert.match(stdout, /ca-bundle +x +b +fail/);
  });

  test('a 10 MB annotation and control characters do not reach the terminal', () => {
    const file = join(folder, 'hostile.json');
    const notAfter = 'x'.repeat(10_000_000);
    writeFileSync(
      file,
      JSON.stringify({
        kind: 'Secret',
        metadata: {
          name: 'a\u001b[2Jb',
          namespace: 'x',
          annotations: { 'auth.openshift.io/certificate-not-after': notAfter },
        },
      }),
    );
    const { stdout } = run(['explain', '-f', file]);
    assert.ok(stdout.length < 20_000);
    assert.ok(!stdout.includes('\u001b'));
  });

  const bad: [string, string[], string, RegExp][] = [
    ['a file that is not there', ['-f', '/does/not/exist'], '', /cannot read \/does\/not\/exist: no such file/],
    ['broken YAML on standard input', ['-f', '-'], 'a: [', /cannot read standard input: /],
    ['a date that does not exist', ['-f', '-', '--now', '2026-02-30T00:00:00Z'], '', /--now must be a time such as/],
    [
      'an unknown format',
      ['-f', '-', '-o', 'xml'],
      '{}',
      /--output must be table, wide, json, yaml, name, .*, found "xml"/,
    ],
    ['a refresh of 0', ['-f', '-', '--refresh', '0s'], '', /--refresh must be a duration above 0/],
    ['no file and no cluster', [], '', /no kubeconfig found/],
  ];
  for (const [what, args, input, message] of bad) {
    test(`${what}: one clear line and exit code 1`, () => {
      const { status, stderr, stdout } = run(['explain', ...args], input);
      assert.deepEqual([status, stdout], [1, '']);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /\n {4}at /);
    });
  }
});

function run(args: string[], input = ''): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [join(root, 'src/cli/main.ts'), ...args], {
    encoding: 'utf8',
    input,
    timeout: 2 * PATIENCE_MS,
    env: { ...process.env, KUBECONFIG: '', HOME: folder },
  });
}
