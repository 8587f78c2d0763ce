/** Looking at a control plane that kubeadm made, with nothing installed (spec 80, 10): the files of a folder. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { load } from 'js-yaml';
import { days } from '../../src/kube/duration.ts';
import { issueClient, issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates } from '../../src/pki/pem.ts';
import { runMain } from './cockpit.ts';
import { type KubeadmFolder, kubeadmFolder } from './kubeadm-folder.ts';

const NOW = new Date('2026-03-01T00:00:00Z');
const at = (count: number) => new Date(NOW.getTime() + days(count)).toISOString();

interface Item {
  readonly metadata: { readonly name: string };
  readonly state: string;
  readonly problem?: string;
  readonly seen: { readonly isExternal: boolean; readonly renewal: string; readonly places: readonly string[] };
}

async function certs(
  dir: string,
  now = at(1),
): Promise<{ items: readonly Item[]; unseen: readonly string[]; text: string }> {
  const { status, stdout, stderr } = await runMain(['get', 'certs', '--from', dir, '--now', now, '-o', 'json']);
  assert.equal(status, 0, stderr);
  return { ...(JSON.parse(stdout) as { items: Item[]; unseen: string[] }), text: stdout };
}

const stateOf = (items: readonly Item[], name: string) => items.find(({ metadata }) => metadata.name === name)?.state;
const notGood = (items: readonly Item[]) =>
  items.filter(({ state }) => state !== 'Good').map(({ metadata, state }) => `${metadata.name} ${state}`);

describe('the files of a control-plane node', () => {
  const folder = (t: TestContext, leafDays?: number): Promise<KubeadmFolder> =>
    kubeadmFolder(t, { now: NOW, leafDays });

  test('each with its end, its CA and who renews it; the answer first, in a terminal, and no key anywhere', async t => {
    const { dir } = await folder(t);
    const { items, unseen, text } = await certs(dir);
    assert.equal(items.length, 15);
    assert.deepEqual(notGood(items), []);
    assert.deepEqual(unseen, []);
    assert.doesNotMatch(text, /PRIVATE KEY/);
    const { stdout } = await runMain(['get', 'certs', '--from', dir, '--now', at(1)]);
    const lines = stdout.split('\n');
    assert.match(lines[1] ?? '', /^The next to end is .*, in 364d/);
    assert.match(stdout, /^apiserver +Good +2027-03-01 +364d +ca +by hand$/m);
    assert.match(stdout, /^ca +Good +2036-02-27 +9y +<itself> +nobody$/m);
    assert.match(stdout, /^kubelet.conf .* kubelet$/m);
    assert.ok(
      lines.every(line => line.length <= 84),
      stdout,
    );
  });

  test('the other formats, selectors and names are those of get certs', async t => {
    const { dir } = await folder(t);
    const get = async (...args: string[]) => (await runMain(['get', ...args, '--from', dir, '--now', at(1)])).stdout;
    assert.equal(
      await get('certs', 'apiserver', '-o', 'custom-columns=A:.metadata.name,CA:.seen.authority'),
      'A           CA\napiserver   ca\n',
    );
    assert.equal(await get('certs', 'apiserver', '-o', 'name'), 'certificate/apiserver\n');
    assert.match(await get('certs', 'ca', '-o', 'yaml'), /^kind: Certificate$/m);
    assert.match(await get('certs', '-o', 'wide'), /kubeadm certs renew etcd-peer/);
    assert.equal(
      (await get('certs', '--sort-by', 'expires', '-o', 'name')).split('\n').at(-2),
      'certificate/front-proxy-ca',
    );
    assert.equal((await get('signers', '-o', 'name')).split('\n').length, 4);
    assert.equal(await get('certs', '--field-selector', 'state!=Good', '-o', 'name'), '');
    assert.equal((await runMain(['get', 'certs', 'nope', '--from', dir])).status, 1);
  });

  test('what is missing, over, soon over or no certificate is told first', async t => {
    const { dir, write } = await folder(t, 40);
    rmSync(join(dir, 'pki/etcd/peer.crt'));
    write('pki/front-proxy-client.crt', '-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n');
    write('scheduler.conf', 'clusters: [\n');
    const { items } = await certs(dir, at(30));
    assert.equal(stateOf(items, 'etcd-peer'), 'Missing');
    assert.equal(stateOf(items, 'front-proxy-client'), 'Unusable');
    assert.equal(stateOf(items, 'scheduler.conf'), 'Unusable');
    assert.equal(stateOf(items, 'apiserver'), 'Expiring');
    assert.equal(stateOf(items, 'ca'), 'Good');
    assert.equal(stateOf((await certs(dir, at(41))).items, 'apiserver'), 'Expired');
    const { stdout } = await runMain(['get', 'certs', '--from', dir, '--now', at(41)]);
    assert.match(stdout, /^\d+ certificates need somebody:\n- admin.conf ended 24h ago\n/);
  });

  test('a CA without its key is external, and whoever brought it renews; a copy without any keys does not tell', async t => {
    const { dir } = await folder(t);
    rmSync(join(dir, 'pki/ca.key'));
    const { items } = await certs(dir);
    const external = items.filter(({ seen }) => seen.isExternal).map(({ metadata }) => metadata.name);
    assert.deepEqual(external.sort(), [
      'admin.conf',
      'apiserver',
      'apiserver-kubelet-client',
      'ca',
      'controller-manager.conf',
      'kubelet.conf',
      'scheduler.conf',
      'super-admin.conf',
    ]);
    for (const base of [
      'etcd/ca',
      'etcd/server',
      'etcd/peer',
      'etcd/healthcheck-client',
      'front-proxy-ca',
      'front-proxy-client',
      'apiserver',
      'apiserver-etcd-client',
      'apiserver-kubelet-client',
    ]) {
      rmSync(join(dir, `pki/${base}.key`));
    }
    const copy = await certs(dir);
    assert.deepEqual(
      copy.items.filter(({ seen }) => seen.isExternal),
      [],
    );
    assert.match(copy.unseen.join(), /no key is in pki/);
  });

  test('a leaf of another CA, a key of another leaf, a CA that is none', async t => {
    const { dir, write, writePair } = await folder(t);
    const common = { keys: systemKeys, now: NOW, lifetimeMs: days(30), algorithm: 'P-256' } as const;
    const stranger = await issueSigner({ ...common, commonName: 'kubernetes' });
    writePair('apiserver-kubelet-client', await issueClient({ ...common, signer: stranger, user: { name: 'x' } }));
    write('pki/apiserver.key', readFileSync(join(dir, 'pki/front-proxy-client.key'), 'utf8'));
    write('pki/front-proxy-ca.crt', readFileSync(join(dir, 'pki/front-proxy-client.crt'), 'utf8'));
    const { items } = await certs(dir);
    const problem = (name: string) => items.find(({ metadata }) => metadata.name === name)?.problem ?? '';
    assert.match(problem('apiserver-kubelet-client'), /signed by "kubernetes" and not by the key of pki\/ca.crt/);
    assert.match(problem('apiserver'), /does not match/);
    assert.match(problem('front-proxy-ca'), /no CA/);
  });

  test('a CA file with comments and two generations: the first counts', async t => {
    const { dir, write } = await folder(t);
    const next = await issueSigner({
      keys: systemKeys,
      now: NOW,
      lifetimeMs: days(9000),
      algorithm: 'P-256',
      commonName: 'kubernetes@1',
    });
    write(
      'pki/ca.crt',
      `# the old one\n${readFileSync(join(dir, 'pki/ca.crt'), 'utf8')}# the new one\n${encodeCertificates(next.chain)}`,
    );
    const { items } = await certs(dir);
    assert.deepEqual(notGood(items), []);
  });
});

describe('folders of other shapes', () => {
  test('links inside are followed, links out of the folder and in circles are not', async t => {
    const { dir } = await kubeadmFolder(t, { now: NOW });
    const outside = await kubeadmFolder(t, { now: NOW });
    rmSync(join(dir, 'pki/apiserver.crt'));
    symlinkSync(join(outside.dir, 'pki/apiserver.crt'), join(dir, 'pki/apiserver.crt'));
    symlinkSync(outside.dir, join(dir, 'other'));
    symlinkSync('.', join(dir, 'pki/self'));
    symlinkSync('loop', join(dir, 'loop'));
    symlinkSync('ca.crt', join(dir, 'pki/same-ca.crt'));
    const { items, unseen } = await certs(dir);
    assert.equal(stateOf(items, 'apiserver'), 'Missing');
    assert.equal(items.length, 15);
    assert.match(unseen.join('\n'), /pki\/apiserver.crt: a link that leads out of the folder/);
    assert.match(unseen.join('\n'), /^other: a link that leads out/m);
  });

  test('what a kubelet keeps: the current one, and not those before it', async t => {
    const { dir } = await kubeadmFolder(t, { now: NOW });
    const place = join(dir, 'kubelet');
    mkdirSync(place);
    const kubeconfig = readFileSync(join(dir, 'kubelet.conf'), 'utf8');
    const decoded = (field: string) =>
      Buffer.from(new RegExp(`${field}: "?([^"\\s]+)`).exec(kubeconfig)?.[1] ?? '', 'base64');
    const both = Buffer.concat([decoded('client-certificate-data'), decoded('client-key-data')]);
    for (const date of ['2025-01-01-00-00-00', '2026-03-01-00-00-00'])
      writeFileSync(join(place, `kubelet-client-${date}.pem`), both);
    symlinkSync('kubelet-client-2026-03-01-00-00-00.pem', join(place, 'kubelet-client-current.pem'));
    const { items } = await certs(place);
    assert.deepEqual(
      items.map(({ metadata, seen }) => [metadata.name, seen.renewal]),
      [['kubelet-client-current.pem', 'kubelet']],
    );
  });

  test('a worker: its CA, and where its own certificate is', async t => {
    const { dir } = await kubeadmFolder(t, { now: NOW });
    const worker = join(dir, 'worker');
    mkdirSync(join(worker, 'pki'), { recursive: true });
    writeFileSync(join(worker, 'pki/ca.crt'), readFileSync(join(dir, 'pki/ca.crt')));
    const file = '/var/lib/kubelet/pki/kubelet-client-current.pem';
    writeFileSync(
      join(worker, 'kubelet.conf'),
      `kind: Config\nclusters: []\nusers:\n- name: u\n  user: {client-certificate: ${file}, client-key: ${file}}\n`,
    );
    const { items, unseen } = await certs(worker);
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      ['ca'],
    );
    assert.match(unseen.join('\n'), /kubelet.conf names .*rotunda get certs --from \/var\/lib\/kubelet\/pki/);
  });

  test('several nodes are told apart; any PEM file and any kubeconfig counts, in JSON too', async t => {
    const { dir } = await kubeadmFolder(t, { now: NOW });
    const all = join(dir, 'all');
    for (const node of ['a', 'b']) cpSync(join(dir, 'pki'), join(all, node, 'pki'), { recursive: true });
    writeFileSync(join(all, 'me.json'), JSON.stringify(load(readFileSync(join(dir, 'admin.conf'), 'utf8'))));
    writeFileSync(join(all, 'web.pem'), readFileSync(join(dir, 'pki/apiserver.crt')));
    const { items } = await certs(all);
    const names = items.map(({ metadata }) => metadata.name);
    for (const name of ['a/apiserver', 'b/etcd-ca', 'me.json', 'web.pem']) assert.ok(names.includes(name), name);
  });

  test('large, unreadable and strange files end nothing', async t => {
    const { dir, write } = await kubeadmFolder(t, { now: NOW });
    write('pki/huge.crt', 'x'.repeat(2 * 1024 * 1024));
    write('notes.txt', 'nothing to see');
    write('empty.crt', '');
    write('pki/locked.crt', 'x');
    chmodSync(join(dir, 'pki/locked.crt'), 0);
    const { items } = await certs(dir);
    const problem = (name: string) => items.find(({ metadata }) => metadata.name === name)?.problem ?? '';
    assert.match(problem('pki/huge.crt'), /at most 1048576 are read/);
    assert.match(problem('empty.crt'), /no PEM block/);
    assert.notEqual(problem('pki/locked.crt'), '');
    assert.equal(stateOf(items, 'apiserver'), 'Good');
  });

  test('a folder without certificates, and one that is not there', async t => {
    const { dir } = await kubeadmFolder(t, { now: NOW });
    mkdirSync(join(dir, 'none'));
    assert.match((await runMain(['get', 'certs', '--from', join(dir, 'none')])).stderr, /no certs found/);
    const missing = await runMain(['get', 'certs', '--from', join(dir, 'nowhere')]);
    assert.equal(missing.status, 1);
    assert.match(missing.stderr, /no such file or folder/);
  });
});

describe('plan', () => {
  const plan = async (dir: string, ...args: string[]) => runMain(['plan', '--from', dir, '--now', at(1), ...args]);

  test('lists first what ends and nobody renews, with how; what a kubelet renews is not among it', async t => {
    const { dir } = await kubeadmFolder(t, { now: NOW, leafDays: 60 });
    const { status, stdout, stderr } = await plan(dir);
    assert.equal(status, 0);
    assert.match(
      stdout,
      /^WARNING: 11 ends in this time, and no controller renews them:\nENDS +IN +CERTIFICATE +RENEWED-WITH\n/,
    );
    assert.match(stdout, /59d +apiserver +kubeadm certs renew apiserver$/m);
    assert.doesNotMatch(stdout, /kubelet.conf/);
    assert.match(stderr, /11 ends that no controller prevents/);
    const { warnings } = JSON.parse((await plan(dir, '-o', 'json')).stdout) as {
      warnings: { name: string; at: string }[];
    };
    assert.equal(warnings.length, 11);
  });

  test('says what ends next where nothing ends in its days', async t => {
    const { dir } = await kubeadmFolder(t, { now: NOW });
    const { stdout, stderr } = await plan(dir);
    assert.equal(stdout, '');
    assert.match(stderr, /14 of 15 end unless somebody renews them\. The next to end is .*, in 364d/);
  });
});

describe('explain', () => {
  const explain = (...args: string[]) => runMain(['explain', '--now', at(1), ...args]);

  test('says what a file is, who reads it, who renews it and what ends with it', async t => {
    const { dir } = await kubeadmFolder(t, { now: NOW });
    const { status, stdout } = await explain('-f', join(dir, 'pki/apiserver.crt'));
    assert.equal(status, 0);
    assert.match(stdout, /^apiserver.crt: Good, ends in 364d\n/);
    assert.match(stdout, /known as +apiserver, in kubeadm's layout/);
    assert.match(stdout, /read by +kube-apiserver --tls-cert-file \(a change is taken by itself\)/);
    assert.match(stdout, /kubeadm certs renew apiserver does/);
    for (const [file, knownAs] of [
      ['admin.conf', 'admin.conf'],
      ['pki/etcd/peer.crt', 'etcd-peer'],
      ['pki/etcd/server.crt', 'etcd-server'],
      ['pki/etcd/ca.crt', 'etcd-ca'],
      ['kubelet.conf', 'kubelet.conf'],
    ] as const) {
      const [found] = JSON.parse((await explain('-f', join(dir, file), '-o', 'json')).stdout) as {
        seen: { knownAs: string };
      }[];
      assert.equal(found?.seen.knownAs, knownAs);
    }
  });

  test('one that is over, or no certificate, is an error; certificates and objects are not mixed', async t => {
    const { dir, write } = await kubeadmFolder(t, { now: NOW, leafDays: 2 });
    const expired = await runMain(['explain', '-f', join(dir, 'pki/apiserver.crt'), '--now', at(4)]);
    assert.equal(expired.status, 1);
    assert.match(expired.stdout, /^apiserver.crt: Expired, ended 2d ago/);
    write('broken.crt', 'nothing');
    write('object.yaml', 'kind: Secret\nmetadata: {name: x}\n');
    assert.equal((await explain('-f', join(dir, 'broken.crt'))).status, 1);
    assert.match(
      (await explain('-f', join(dir, 'admin.conf'), '-f', join(dir, 'object.yaml'))).stderr,
      /explained apart/,
    );
  });
});

test('hand-overs of an adopted cluster, from what was kept of it', async t => {
  const { write, dir } = await kubeadmFolder(t, { now: NOW });
  const status = {
    adopted: true,
    differences: [],
    message: 'ca is handed over (Distributing): waiting for kubelet on w',
    waitingFor: [],
    families: { ca: { phase: 'Distributing', because: 'waiting for kubelet on w', waitingFor: ['kubelet on w'] } },
  };
  const metadata = { namespace: 'rotunda-pki', name: 'kubeadm' };
  const record = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { status: JSON.stringify(status) } };
  write('record.json', JSON.stringify(record));
  const get = (...args: string[]) => runMain(['get', 'hand-overs', ...args, '--from', join(dir, 'record.json')]);
  const { stdout, status: code } = await get();
  assert.equal(code, 0);
  assert.match(stdout, /^ca is handed over \(Distributing\).*\nNAME +PHASE +SINCE +WAITING-FOR +BECAUSE\n/);
  assert.match(stdout, /^ca +Distributing +<none> +kubelet on w +waiting for kubelet on w$/m);
  assert.equal((await get('-n', 'rotunda-pki', '-o', 'name')).stdout, 'hand-over/ca\nhand-over/sa\n');
  const serviceAccount = { phase: 'Retiring', because: 'tokens are good', leavesAt: at(20) };
  write('record.json', JSON.stringify({ ...record, data: { status: JSON.stringify({ ...status, serviceAccount }) } }));
  const plan = (days: string) =>
    runMain(['plan', '--from', join(dir, 'record.json'), '--now', at(0), '--days', days, '-o', 'yaml']);
  assert.match(
    (await plan('30')).stdout,
    /reason: 'an older key of service accounts is still accepted: tokens are good'/,
  );
  assert.match(
    (await plan('10')).stdout,
    /notes:\n +- 'an older key of service accounts is still accepted: tokens are/,
  );
  write('record.json', JSON.stringify({ ...record, data: {} }));
  assert.match((await get()).stderr, /^no hand-overs found: this cluster is adopted, and its operator has not said/);
  assert.match((await get('ca')).stderr, /^error: hand-overs "ca" not found: this cluster is adopted/);
});

test('the keys of service accounts have no end; who reads them, who is refused, and no key is shown', async t => {
  const { write, dir } = await kubeadmFolder(t, { now: NOW });
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  write('sa.pub', publicKey.export({ type: 'spki', format: 'pem' }) as string);
  write('sa.key', privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
  const explain = (file: string, ...args: string[]) => runMain(['explain', '-f', join(dir, file), ...args]);
  const found = await explain('sa.pub');
  assert.equal(found.status, 0, found.stderr);
  assert.match(found.stdout, /^sa\.pub: Good, a key without an end\n/);
  assert.match(found.stdout, /read by +kube-apiserver --service-account-key-file/);
  assert.match(found.stdout, /if replaced +without a hand-over every token of the key before is refused/);
  const [ofPair, ofPublic] = await Promise.all(
    ['sa.key', 'sa.pub'].map(async file => JSON.parse((await explain(file, '-o', 'json')).stdout)[0].keys),
  );
  assert.deepEqual(ofPair, ofPublic);
  assert.doesNotMatch((await explain('sa.key', '-o', 'yaml')).stdout, /PRIVATE/);
  assert.match((await explain('sa.pub', '-f', join(dir, 'admin.conf'))).stderr, /explained apart/);
  write('sa.pub', 'nothing');
  const broken = await explain('sa.pub');
  assert.equal(broken.status, 1);
  assert.match(broken.stdout, /^sa\.pub: Unusable, expected a public key in PEM, found none/);
});
