import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { load } from 'js-yaml';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, PODS, SECRETS } from '../../src/kube/resource.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';
import { type Cockpit, inTerminal, main, Running, runMain, startCockpit } from './cockpit.ts';

const OPERATOR = 'openshift-kube-apiserver-operator';
const OPERAND = 'openshift-kube-apiserver';
let cockpit: Cockpit;
before(async () => {
  cockpit = await startCockpit();
});
after(() => cockpit.stop());

describe('rotunda get', () => {
  test('tables the way kubectl prints them', async () => {
    const all = await cockpit.run(['get', 'certs']);
    assert.equal(all.status, 0, all.stderr);
    assert.match(all.stdout, /^NAMESPACE +NAME +ROLE +STATE +EXPIRES +NEXT +AGE\n/);
    assert.equal(all.stdout.trimEnd().split('\n').length, 21);
    const wide = await cockpit.run(['get', 'signers', '-n', OPERATOR, '-o', 'wide', '--no-headers']);
    assert.match(wide.stdout, /^aggregator-client-signer +Good +29d +1[45]d /);
    assert.equal(wide.stdout.trimEnd().split('\n').length, 8);
    assert.match(
      (await cockpit.run(['get', 'bundles', '--sort-by', 'name'])).stdout,
      /loadbalancer-serving-ca +ca-bundle +Good +1 /,
    );
    assert.match((await cockpit.run(['get', 'nodes'])).stderr, /^no nodes found\n$/);
  });

  test('documents for machines', async () => {
    const json = JSON.parse((await cockpit.run(['get', 'cert/kubelet-client', '-n', OPERAND, '-o', 'json'])).stdout);
    assert.deepEqual(
      [json.kind, json.metadata.name, json.role, json.certificate.subject],
      ['Certificate', 'kubelet-client', 'target', 'system:kube-apiserver'],
    );
    const yaml = load((await cockpit.run(['get', 'bundles', '-o', 'yaml'])).stdout) as {
      kind: string;
      items: unknown[];
    };
    assert.deepEqual([yaml.kind, yaml.items.length > 8], ['BundleList', true]);
    assert.equal(
      (await cockpit.run(['get', 'signers', 'kube-control-plane-signer', '-o', 'name'])).stdout,
      'secret/kube-control-plane-signer\n',
    );
    const path = '{range .items[?(@.role=="signer")]}{.metadata.name}{"\\n"}{end}';
    assert.equal(
      (await cockpit.run(['get', 'certs', '-o', `jsonpath=${path}`])).stdout.trimEnd().split('\n').length,
      8,
    );
    for (const { stdout } of [
      await cockpit.run(['get', 'certs', '-o', 'json']),
      await cockpit.run(['describe', 'cert', 'kubelet-client']),
    ]) {
      assert.ok(!stdout.includes('PRIVATE KEY'));
    }
  });

  test('selectors', async () => {
    const labelled = await cockpit.run([
      'get',
      'certs',
      '-l',
      'auth.openshift.io/managed-certificate-type in (signer)',
      '-o',
      'name',
    ]);
    assert.equal(labelled.stdout.trimEnd().split('\n').length, 8);
    const bad = await cockpit.run(['get', 'certs', '--field-selector', 'state!=Good']);
    assert.deepEqual([bad.status, bad.stdout, bad.stderr], [0, '', 'no certs found\n']);
  });

  test('from a folder, without any cluster', async () => {
    const { status, stdout } = await runMain([
      'get',
      'certs',
      '--from',
      new URL('../../docs/examples', import.meta.url).pathname,
      '--now',
      '2026-11-15T00:00:00Z',
    ]);
    assert.equal(status, 0);
    assert.match(stdout, /aggregator-client +target +Due +/);
  });

  test('as a kubectl plugin', async t => {
    const link = join(cockpit.dir, 'kubectl-rotunda');
    symlinkSync(main, link);
    const help = spawnSync(process.execPath, [link, '--help'], { encoding: 'utf8' });
    assert.match(help.stdout, /^Usage: kubectl rotunda /);
    if (spawnSync('kubectl', ['version', '--client']).status !== 0)
      return t.skip('there is no kubectl on this machine');
    const bin = join(cockpit.dir, 'bin');
    mkdirSync(bin);
    // What npm puts onto the PATH for a bin entry.
    writeFileSync(join(bin, 'kubectl-rotunda'), `#!/bin/sh\nexec "${process.execPath}" "${link}" "$@"\n`, {
      mode: 0o755,
    });
    const running = new Running('kubectl', ['rotunda', 'get', 'signers', '-n', OPERATOR, '-o', 'name'], {
      PATH: `${bin}:${process.env.PATH}`,
      KUBECONFIG: cockpit.kubeconfig,
    });
    assert.deepEqual([await running.end(), running.text.trimEnd().split('\n').length], [0, 8], running.text);
    return undefined;
  });

  test('-w in a terminal: the list, then what changes, until Ctrl-C', { timeout: 2 * PATIENCE_MS }, async t => {
    const running = inTerminal(['get', 'certs', '-n', OPERAND, '-w'], cockpit.kubeconfig);
    if (running === undefined) return t.skip('there is no python3 to make a pseudo-terminal');
    t.after(() => running.child.kill('SIGKILL'));
    await running.until(/service-network-serving-certkey/);
    const secret = await cockpit.api.kube.get(SECRETS, { namespace: OPERAND, name: 'kubelet-client' });
    const annotations = { ...secret.metadata?.annotations, [NOT_AFTER]: 'force-regeneration' };
    await cockpit.api.kube.update(SECRETS, { ...secret, metadata: { ...secret.metadata, annotations } });
    await running.until(/kubelet-client +target +Due/);
    await cockpit.rotate();
    await running.until(/kubelet-client +target +Due[\s\S]*kubelet-client +target +Good/);
    const extra = { namespace: OPERAND, name: 'short-lived' };
    await cockpit.api.kube.create(SECRETS, { metadata: extra, type: 'kubernetes.io/tls', data: secret.data ?? {} });
    await running.until(/short-lived/);
    await cockpit.api.kube.delete(SECRETS, extra);
    await running.until(/short-lived[\s\S]*short-lived/);
    running.child.stdin?.write('\u0003');
    assert.equal(await running.end(), 0);
    assert.equal(running.text.match(/NAME +ROLE/g)?.length, 1);
    return undefined;
  });
});

describe('rotunda monitor', () => {
  test('in a terminal: certificates and bundles as they change, until Ctrl-C', {
    timeout: 2 * PATIENCE_MS,
  }, async t => {
    const running = inTerminal(['monitor'], cockpit.kubeconfig);
    if (running === undefined) return t.skip('there is no python3 to make a pseudo-terminal');
    t.after(() => running.child.kill('SIGKILL'));
    await running.until(/watching https:/);
    const forced = await cockpit.run([
      'regenerate-top-level',
      'secret/aggregator-client-signer',
      '-n',
      OPERATOR,
      '--yes',
    ]);
    assert.equal(forced.status, 0, forced.stderr);
    assert.match(forced.stdout, /^secret\/aggregator-client-signer regeneration set\n/);
    await running.until(/RegenerationStarted +secret\/aggregator-client-signer/);
    await cockpit.rotate();
    await running.until(/RegenerationFinished +secret\/aggregator-client-signer/);
    await running.until(
      /BundleChanged +configmap\/kube-apiserver-aggregator-client-ca in openshift-config-managed: CA bundle has 2 CAs now: \+ /,
    );
    running.child.stdin?.write('\u0003');
    assert.equal(await running.end(), 0);
    return undefined;
  });

  test('ends by itself after --timeout, and prints one JSON object a line', async () => {
    const { status, stdout, stderr } = await cockpit.run(['monitor-certificates', '-o', 'json', '--timeout', '1s']);
    assert.deepEqual([status, stdout], [0, ''], stderr);
  });
});

describe('the other commands over a cluster', () => {
  test('describe, explain, graph, plan, wait', async () => {
    assert.match(
      (await cockpit.run(['describe', 'bundle/loadbalancer-serving-ca'])).stdout,
      /Authorities: +openshift-kube-apiserver-operator_loadbalancer-serving-signer@\d+/,
    );
    assert.match(
      (await cockpit.run(['explain', 'kubelet-client'])).stdout,
      /target +openshift-kube-apiserver +kubelet-client +keep/,
    );
    assert.match(
      (await cockpit.run(['graph', 'loadbalancer-serving-signer'])).stdout,
      /signed secret\/openshift-kube-apiserver\/external-loadbalancer-serving-certkey/,
    );
    assert.match((await cockpit.run(['graph', '-o', 'svg'])).stdout, /^<svg /);
    const plan = JSON.parse((await cockpit.run(['plan', '--days', '20', '-o', 'json'])).stdout);
    assert.ok(plan.events.some((event: { change: string }) => event.change === 'certificate'));
    const stopped = await cockpit.run(['simulate', '--stopped-for', '960h']);
    assert.equal(stopped.status, 1, stopped.stderr);
    assert.match(
      stopped.stdout,
      /^not safe: operators may stand still for 29d \d+h from .+; first to fail: .+\n\nSINCE /,
    );
    const week = [20, 27].map(count => new Date(Date.now() + count * 86_400_000).toISOString().slice(0, 10));
    const off = await cockpit.run(['simulate', '--off', week.join('..')]);
    assert.equal(off.status, 0, off.stderr);
    assert.match(off.stdout, /^safe: off from .+; the last safe wake-up day is 20\d\d-\d\d-\d\d /);
    const { verdict } = JSON.parse((await cockpit.run(['simulate', '--off', week.join('..'), '-o', 'json'])).stdout);
    assert.deepEqual([verdict.isSafe, verdict.needsHand], [true, []]);
    assert.equal(
      (await cockpit.run(['wait', '--for', 'regenerated', 'secret/kubelet-client', '-n', OPERAND, '--timeout', '10m']))
        .status,
      0,
    );
    // A name that nothing has is a mistake, and nothing to wait an hour for.
    const nobody = await cockpit.run(['wait', '--for', 'regenerated', 'secret/nope']);
    assert.deepEqual([nobody.status, nobody.stderr], [1, 'error: secret/nope is not there\n']);
    const late = await cockpit.run(['wait', '--for', 'rolled-out', 'etcd', '--timeout', '1s']);
    assert.deepEqual(
      [late.status, late.stderr.split('\n').at(-2)],
      [1, 'error: gave up after 1s: etcd runs on no node yet'],
    );
    const done = await cockpit.run(['wait', '--for', 'regenerated', 'secret/kubelet-client', '-A', '-o', 'json']);
    assert.deepEqual(JSON.parse(done.stdout).objects, ['secret/kubelet-client'], done.stderr);
    const described = await cockpit.run(['describe', 'cert', 'kubelet-client', '-n', OPERAND, '-o', 'json']);
    assert.equal(JSON.parse(described.stdout).change.verdict, 'reload', described.stderr);
  });
});

describe('verbs that write', () => {
  const read = async (name: string) => (await cockpit.api.kube.get(SECRETS, { namespace: OPERAND, name })).metadata;

  test('--dry-run writes nothing and says what would follow', async () => {
    const before = (await read('aggregator-client'))?.resourceVersion;
    const { status, stdout } = await cockpit.run([
      'regenerate-leaf',
      'secret/aggregator-client',
      '-n',
      OPERAND,
      '--override-gate',
      '--dry-run',
    ]);
    assert.equal(status, 0);
    assert.match(
      stdout,
      /^secret\/aggregator-client regeneration set \(dry run: nothing was written\)\nwould follow:\n {2}\S+ certificate secret\/aggregator-client in openshift-kube-apiserver/,
    );
    assert.equal((await read('aggregator-client'))?.resourceVersion, before);
  });

  test('a new signer is handed over: said once, and its leaves wait; an override is noted on them', async () => {
    const signer = ['regenerate-top-level', 'secret/kube-control-plane-signer', '-n', OPERATOR, '--yes'];
    const begun = await cockpit.run(signer);
    assert.equal(begun.status, 0, begun.stderr);
    assert.match(begun.stdout, /^secret\/kube-control-plane-signer regeneration set\n {2}its operator does not say/);
    assert.match(
      (await cockpit.run(signer)).stdout,
      /^secret\/kube-control-plane-signer is about to be handed over already: /,
    );
    const listed = await cockpit.run(['get', 'hand-overs']);
    assert.match(
      listed.stdout,
      /^\d hand-overs? under way; \d signers steady\nNAMESPACE +NAME +PHASE +SINCE +LOADED +WAITING-FOR\n(?:.*\n)?\S+ +kube-control-plane-signer +Distributing /,
    );
    assert.match(listed.stdout, /\nnote: not counted, for nobody can know what they have loaded: /);
    const one = JSON.parse((await cockpit.run(['get', 'hand-over/kube-control-plane-signer', '-o', 'json'])).stdout);
    assert.deepEqual([one.kind, one.phase, one.write], ['HandOver', 'Distributing', 'begin']);
    const described = await cockpit.run(['describe', 'signer', 'kube-control-plane-signer']);
    assert.match(described.stdout, /^Hand-over: +Distributing: /m, described.stderr);
    assert.match(described.stdout, /^Not counted: |^Asks: /m);
    const explained = await cockpit.run(['explain', 'secret/kube-control-plane-signer']);
    assert.match(explained.stdout, /kube-control-plane-signer +regenerate +now /);
    assert.match(explained.stdout, /note: Distributing \(HO-2\): .*; goes on when every verifier/);
    assert.match((await cockpit.run(['get', 'certs', '--ask'])).stderr, /--ask goes with hand-overs only/);
    const held = await cockpit.run(['regenerate-leaf', 'secret/check-endpoints-client-cert-key', '-n', OPERAND]);
    assert.deepEqual([held.status, held.stdout], [1, '']);
    assert.match(
      held.stderr,
      /^held back: secret\/check-endpoints-client-cert-key in openshift-kube-apiserver: its signer .* is about to be replaced /,
    );
    const unasked = await cockpit.run([
      'regenerate-leaf',
      'secret/check-endpoints-client-cert-key',
      '-n',
      OPERAND,
      '--override-gate',
    ]);
    assert.equal(unasked.status, 1);
    assert.match(unasked.stderr, /say --yes/);
    const done = await cockpit.run([
      'regenerate-leaf',
      'secret/check-endpoints-client-cert-key',
      '-n',
      OPERAND,
      '--override-gate',
      '--yes',
    ]);
    assert.deepEqual([done.status, done.stdout], [0, 'secret/check-endpoints-client-cert-key regeneration set\n']);
    assert.match(
      done.stderr,
      /^past the gate: .*check-endpoints-client-cert-key: its signer .* is about to be replaced /,
    );
    const { annotations = {}, managedFields = [] } = (await read('check-endpoints-client-cert-key')) ?? {};
    assert.equal(annotations[NOT_AFTER], 'force-regeneration');
    assert.ok(annotations['rotunda.dev/regeneration-gate-overridden']);
    assert.ok(managedFields.some(({ manager }) => manager === 'regenerate-leaf-certificates'));
    await cockpit.rotate();
  });

  test('a node is waived by name, only with --yes where nobody can be asked; nothing is taken back where nothing is under way', async () => {
    await cockpit.api.kube.create(NODES, { metadata: { name: 'worker-0' } });
    const said = async (...args: string[]) => cockpit.run(args);
    assert.match((await said('waive', 'pod/x')).stderr, /only nodes can be waived: expected node\/NAME/);
    assert.match((await said('waive', 'node/nope', '--yes')).stderr, /node "nope" not found/);
    assert.match((await said('waive', 'node/worker-0')).stderr, /no hand-over waits for node worker-0 now.*say --yes/s);
    assert.equal((await said('waive', 'node/worker-0', '--yes')).stdout, 'node/worker-0 waived\n');
    assert.equal((await said('waive', 'node/worker-0', '--yes')).stdout, 'node/worker-0 is waived already\n');
    assert.equal((await said('waive', 'node', 'worker-0', '--remove')).stdout, 'node/worker-0 is waited for again\n');
    const refused = await said('take-back', 'loadbalancer-serving-signer', '--yes');
    assert.deepEqual([refused.status, refused.stdout], [1, '']);
    assert.match(refused.stderr, /loadbalancer-serving-signer: nothing is being handed over/);
    assert.match(
      (await said('take-back', 'nobody')).stderr,
      /there is no signer "nobody": known are aggregator-client-signer/,
    );
    await cockpit.api.kube.delete(NODES, { name: 'worker-0' });
  });

  test('what is passed over is named with -v and in JSON; the others are still visited', async () => {
    const { stdout } = await cockpit.run(['regenerate-top-level', 'secrets', '--all', '-n', OPERAND, '-o', 'json']);
    const { outcomes } = JSON.parse(stdout) as { outcomes: { outcome: string; text: string }[] };
    assert.ok(outcomes.length >= 8 && outcomes.every(({ outcome }) => outcome === 'skipped'));
    assert.match(
      (await cockpit.run(['regenerate-top-level', 'secrets', '--all', '-n', OPERAND, '-v'])).stderr,
      /passed over: secret\/kubelet-client in .*: it is no signer/,
    );
  });

  test('old trust is removed only where nobody needs it, and only with --yes where nobody can be asked', async () => {
    const bundle = { namespace: 'openshift-config-managed', name: 'kube-apiserver-aggregator-client-ca' };
    const cut = new Date(Date.now() - 1000).toISOString().replace(/\.\d+Z/, 'Z');
    const args = ['remove-old-trust', `cm/${bundle.name}`, '-n', bundle.namespace, '--created-before'];
    const all = await cockpit.run([...args, '2100-01-01T00:00:00Z', '--yes']);
    assert.equal(all.status, 1);
    assert.match(all.stderr, /an empty bundle trusts nobody/);
    const stored = async () => (await cockpit.api.kube.get(CONFIG_MAPS, bundle)).data?.['ca-bundle.crt'] ?? '';
    const before = await stored();
    // The leaf was signed by the first of the two signers.
    const needed = await cockpit.run([...args, cut, '--yes']);
    assert.deepEqual([needed.status, await stored()], [1, before], needed.stderr);
  });

  test('--local asks no cluster', async () => {
    const { status, stdout } = await runMain([
      'regenerate-leaf',
      '--local',
      '-f',
      new URL('../../docs/examples', import.meta.url).pathname,
    ]);
    assert.equal(status, 0);
    const list = load(stdout) as {
      apiVersion: string;
      kind: string;
      items: { metadata: { annotations: Record<string, string> } }[];
    };
    assert.deepEqual([list.apiVersion, list.kind, list.items.length], ['v1', 'List', 12]);
    assert.ok(list.items.every(({ metadata }) => metadata.annotations[NOT_AFTER] === 'force-regeneration'));
  });

  test('--local says what it does not take, and prints only bundles that are managed', async () => {
    const file = join(cockpit.dir, 'bundles.json');
    const bundle = { namespace: 'openshift-config-managed', name: 'kube-apiserver-aggregator-client-ca' };
    const managed = await cockpit.api.kube.get(CONFIG_MAPS, bundle);
    const foreign = { ...managed, metadata: { namespace: 'default', name: 'foreign' } };
    const broken = { ...managed, data: { 'ca-bundle.crt': 'garbage' } };
    const args = ['remove-old-trust', '--local', '-f', file, '--created-before', '2100-01-01T00:00:00Z'];
    writeFileSync(file, JSON.stringify({ kind: 'List', items: [managed, foreign, broken] }));
    const { status, stdout, stderr } = await runMain([...args, 'cm/foreign', `cm/${bundle.name}`, 'cm/nope', '-v']);
    assert.deepEqual([status, load(stdout)], [1, { apiVersion: 'v1', kind: 'List', items: [] }]);
    assert.match(stderr, /^passed over: configmap\/foreign in default: it is no managed CA bundle$/m);
    assert.match(
      stderr,
      /^error: configmap\/kube-apiserver-aggregator-client-ca in .*: all \d CAs are as old as that/m,
    );
    assert.match(stderr, /^error: configmap\/kube-apiserver-aggregator-client-ca in .*: the bundle cannot be read/m);
    assert.match(stderr, /^error: configmaps "nope" not found in the files$/m);
  });
});

describe('what cannot be undone is asked for', () => {
  for (const [answer, status, wanted] of [
    ['no', 1, /stopped: nothing was written/],
    ['yes', 0, /secret\/node-system-admin-signer regeneration set/],
  ] as const) {
    test(`${answer} in a terminal`, { timeout: 2 * PATIENCE_MS }, async t => {
      const running = inTerminal(
        ['regenerate-top-level', 'secret/node-system-admin-signer', '-n', OPERATOR],
        cockpit.kubeconfig,
      );
      if (running === undefined) return t.skip('there is no python3 to make a pseudo-terminal');
      t.after(() => running.child.kill('SIGKILL'));
      await running.until(/Type yes to go on: /);
      running.child.stdin?.write(`${answer}\n`);
      assert.equal(await running.end(), status);
      assert.match(running.text, wanted);
      return undefined;
    });
  }
});

describe('the machine-config server', () => {
  const MCO = 'openshift-machine-config-operator';
  const MACHINES = 'openshift-machine-api';

  test('its certificate is made once, and its CA reaches the user data of machines', async () => {
    const { kube } = cockpit.api;
    for (const name of [MCO, MACHINES]) await kube.create(NAMESPACES, { metadata: { name } });
    const userData = JSON.stringify({
      ignition: { security: { tls: { certificateAuthorities: [{ source: 'data:,old' }] } } },
    });
    const secret = (name: string, text: string) => ({
      metadata: { namespace: MACHINES, name },
      data: { userData: Buffer.from(text).toString('base64') },
    });
    await kube.create(SECRETS, secret('worker-user-data', userData));
    await kube.create(SECRETS, secret('broken-user-data', 'not json'));
    await kube.create(SECRETS, secret('worker-user-data-managed', userData));
    await kube.create(PODS, {
      metadata: { namespace: MCO, name: 'server', labels: { 'k8s-app': 'machine-config-server' } },
      spec: { containers: [{ name: 'server', image: 'server' }] },
    });
    const dry = await cockpit.run([
      'regenerate-machine-config-server-serving-cert',
      '--dry-run',
      '--update-ignition=false',
    ]);
    assert.deepEqual([dry.status, dry.stdout.match(/^secret\/.* would be made anew/gm)?.length], [0, 2], dry.stderr);
    const whole = await cockpit.run(['regenerate-machine-config-server-serving-cert', '--dry-run=server', '-v']);
    assert.match(whole.stdout, /^secret\/worker-user-data updated \(dry run: nothing was written\)$/m, whole.stderr);
    assert.match(whole.stderr, /^passed over: secret\/worker-user-data-managed in openshift-machine-api: /m);
    const first = await cockpit.run(['regenerate-machine-config-server-serving-cert', '--yes']);
    assert.equal(first.status, 1, 'one Secret cannot be read, and the others are done all the same');
    assert.match(
      first.stdout,
      /secret\/machine-config-server-tls regenerated\n[\s\S]*secret\/worker-user-data updated\n/,
    );
    assert.match(
      first.stdout,
      /secret\/worker-user-data updated\n[\s\S]*pod\/server deleted\n/,
      'machines know the new CA before the server uses it',
    );
    assert.match(first.stderr, /^error: secret\/broken-user-data in openshift-machine-api: userData is no JSON\n$/);
    const ca =
      (await kube.get(CONFIG_MAPS, { namespace: MCO, name: 'machine-config-server-ca' })).data?.['ca-bundle.crt'] ?? '';
    const stored = await kube.get(SECRETS, { namespace: MACHINES, name: 'worker-user-data' });
    const text = Buffer.from(stored.data?.userData ?? '', 'base64').toString();
    assert.ok(text.includes(Buffer.from(ca).toString('base64')));
    const second = await cockpit.run(['update-ignition-ca-bundle-for-machine-config-server', '--yes']);
    assert.match(second.stdout, /secret\/worker-user-data is current/);
    const json = await cockpit.run(['update-ignition-ca-bundle-for-machine-config-server', '--yes', '-o', 'json']);
    const { outcomes } = JSON.parse(json.stdout) as { outcomes: { object: { name: string }; outcome: string }[] };
    assert.deepEqual(
      outcomes.map(({ object, outcome }) => [object.name, outcome]),
      [
        ['broken-user-data', 'failed'],
        ['worker-user-data', 'unchanged'],
        ['worker-user-data-managed', 'skipped'],
      ],
    );
    const again = await cockpit.run([
      'regenerate-machine-config-server-serving-cert',
      '--yes',
      '--update-ignition=false',
    ]);
    assert.deepEqual([again.status, again.stdout.match(/unchanged/g)?.length], [0, 3], again.stderr);
  });
});

test('bash completes commands, types and flags', async t => {
  if (spawnSync('bash', ['--version']).status !== 0) return t.skip('there is no bash on this machine');
  const { stdout } = await runMain(['completion', 'bash']);
  const complete = (...words: string[]) => {
    const script = `${stdout}\nCOMP_WORDS=(rotunda ${words.join(' ')}); COMP_CWORD=${words.length}; _rotunda; echo "\${COMPREPLY[*]}"`;
    return spawnSync('bash', ['-c', script], { encoding: 'utf8' }).stdout.trimEnd();
  };
  assert.equal(complete('regenerate-l'), 'regenerate-leaf');
  assert.equal(complete('get', 'sig'), 'signers');
  assert.equal(complete('remove-old-trust', '--cre'), '--created-before');
  return undefined;
});
