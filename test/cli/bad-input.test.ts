import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { days } from '../../src/kube/duration.ts';
import { type Cockpit, kubeconfigText, startCockpit } from './cockpit.ts';

const OPERATOR = 'openshift-kube-apiserver-operator';
let cockpit: Cockpit;
let [nobody, strangers, expired] = ['', '', ''];
before(async () => {
  cockpit = await startCockpit();
  nobody = join(cockpit.dir, 'nobody.kubeconfig');
  writeFileSync(nobody, kubeconfigText('https://127.0.0.1:9'));
  strangers = await cockpit.strangersKubeconfig('stranger', days(20));
  expired = await cockpit.strangersKubeconfig('late', days(1));
});
after(() => cockpit.stop());

describe('bad input: one clear line and the right exit code', { concurrency: 3 }, () => {
  const usage: [string[], RegExp][] = [
    [['regenerate-top-level', 'secrets', '--all', '-n', OPERATOR], /This cannot be undone: say --yes/],
    [['update-ignition-ca-bundle-for-machine-config-server'], /This cannot be undone: say --yes/],
    [['regenerate-leaf', 'secrets', '--all', '-A', '--valid-before', 'yesterday'], /--valid-before must be a time/],
    [['get', 'unicorns'], /there is no type "unicorns": known are certs, signers/],
    [['get', 'certs', '-l', 'a b'], /--selector cannot be read/],
    [['get', 'certs', '--zzz'], /unknown option '--zzz'/],
  ];
  for (const [args, message] of usage) {
    test(`${args.join(' ')}: exit code 1`, async () => {
      const { status, stdout, stderr } = await cockpit.run(args);
      assert.deepEqual([status, stdout], [1, ''], stderr);
      assert.match(stderr, message);
      assert.match(stderr, /^error: [^\n]+\n(\n?\(run rotunda --help for the commands\)\n)?$/);
    });
  }

  const missing: [string[], RegExp][] = [
    [['get', 'cert', 'nope'], /^error: cert "nope" not found\n$/],
    [['describe', 'signer/nope', '-n', OPERATOR], /^error: signer "nope" not found in namespace /],
    [['explain', 'nope'], /^error: no signer, bundle or target "nope" found\n$/],
    [['graph', 'nope'], /^error: nothing called "nope" in the graph\n$/],
    [['plan', '--force', 'secret/a/b'], /^error: secret "b" not found in namespace a\n$/],
    [['regenerate-leaf', 'secret/nope', '-n', 'default'], /^error: secrets "nope" not found in namespace default\n$/],
  ];
  for (const [args, message] of missing) {
    test(`${args.join(' ')}: exit code 1`, async () => {
      const { status, stdout, stderr } = await cockpit.run(args);
      assert.deepEqual([status, stdout], [1, ''], stderr);
      assert.match(stderr, message);
    });
  }

  const every = [
    ['get', 'certs'],
    ['get', 'certs', '-w'],
    ['describe', 'cert', 'x'],
    ['explain'],
    ['graph'],
    ['plan'],
    ['regenerate-leaf', 'secret/x'],
    ['remove-old-trust', 'cm/x', '--created-before', '2026-01-01T00:00:00Z'],
    ['monitor'],
    ['verify'],
  ];
  for (const args of every) {
    test(`${args.join(' ')} without a cluster that answers`, async () => {
      const { status, stdout, stderr } = await cockpit.run(args, { kubeconfig: nobody });
      assert.deepEqual([status, stdout], [1, ''], stderr);
      assert.match(stderr, /^error: cannot reach the cluster at https:\/\/127\.0\.0\.1:9\/: [^\n]*\n$/);
    });
  }
  for (const args of [every[0], every[5], every[6]] as string[][]) {
    test(`${args.join(' ')} without permission, and with a certificate that is over`, async () => {
      const stranger = await cockpit.run(args, { kubeconfig: strangers });
      assert.deepEqual([stranger.status, stranger.stdout], [1, '']);
      assert.match(stranger.stderr, /^error: not allowed: [^\n]*cannot (list|get) [^\n]*\n$/);
      const late = await cockpit.run(args, { kubeconfig: expired });
      assert.equal(late.status, 1);
      // Who asks for certificates is shown the one that is over (spec 80, 10).
      if (args[0] === 'get' || args[0] === 'plan') assert.match(late.stdout, /kubeconfig \(/);
      else assert.equal(late.stdout, '');
      assert.match(late.stderr, /^error: [^\n]*the client certificate of the kubeconfig expired at \d{4}-[^\n]*\n$/);
    });
  }
});
