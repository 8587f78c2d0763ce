/** What an agent makes of what is wanted, step by step of a hand-over (spec 80, 5 to 7). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_MAPS, SECRETS } from '../../../src/kube/resource.ts';
import { KUBEADM_CHAINS } from '../../../src/kubeadm/chains.ts';
import type { CertificateAndKey } from '../../../src/pki/authority.ts';
import { readCertificates } from '../../../src/pki/pem.ts';
import { KUBELET_PEM, manifest, PKI, publishNext, publishNextKey, snapshot } from './kubeadm-node.ts';
import { NOW, withScene } from './scene.ts';

const ALL = Object.fromEntries(KUBEADM_CHAINS.map(({ name }) => [name, NOW.toISOString()]));
const FOLDERS = ['/etc/kubernetes', '/var/lib/kubelet'];

test('leaves are renewed with the subject, names, usages, life and kind of key that they had', async () => {
  await withScene({ leafDays: 100 }, async scene => {
    const agent = scene.run();
    const before = await scene.certificate(`${PKI}/apiserver.crt`);
    const admin = await scene.text('/etc/kubernetes/admin.conf');
    const started = (await scene.whole()).processes['kube-scheduler']?.startedAt;
    await scene.want({ round: 'r1', leaves: ALL });
    const report = await scene.done('r1');
    const after = await scene.certificate(`${PKI}/apiserver.crt`);
    assert.ok(!after.der.equals(before.der));
    for (const field of ['dnsNames', 'ipAddresses', 'extKeyUsages', 'keyUsages'] as const) {
      assert.deepEqual(after[field], before[field], field);
    }
    assert.ok(after.subject.der.equals(before.subject.der));
    assert.equal(after.subjectKeyId, undefined);
    assert.equal(+after.notAfter - +after.notBefore, +before.notAfter - +before.notBefore);
    assert.ok(+after.notBefore <= +scene.clock.now() - 5 * 60_000);
    assert.ok(Object.values(report.leaves).every(({ problem }) => problem === undefined));
    // Who reads its kubeconfig at the start was started anew, the others were not.
    assert.deepEqual(
      ['kube-scheduler', 'kube-controller-manager', 'kube-apiserver', 'etcd'].map(name => scene.starts.get(name)),
      [2, 2, 1, 1],
    );
    assert.notEqual(report.processes['kube-scheduler']?.startedAt, started);
    assert.ok(Object.values(report.processes).every(({ behind }) => behind.length === 0));
    // Everything but the client's certificate is as it was.
    const without = (text: string) => text.replaceAll(/client-(certificate|key)-data: .*/g, '');
    assert.equal(without(await scene.text('/etc/kubernetes/admin.conf')), without(admin));
    assert.equal((await scene.host.files.stat(`${PKI}/apiserver.key`))?.mode, 0o600);
    assert.equal(await scene.host.files.stat(`${PKI}/rotunda`), undefined);
    assert.deepEqual(scene.host.asked, ['restart kubelet.service']);
    assert.match(
      (await scene.host.files.readLink(KUBELET_PEM)) ?? '',
      /kubelet-client-2026-03-01-\d\d-\d\d-\d\d\.pem$/,
    );
    await agent.stop();
  });
});

test('a leaf that somebody else has renewed is taken as it is (KA-5)', async () => {
  await withScene({}, async scene => {
    const before = await snapshot(scene.host, ...FOLDERS);
    const agent = scene.run();
    const made = new Date(NOW.getTime() - 2 * 86_400_000).toISOString();
    await scene.want({ round: 'r1', leaves: Object.fromEntries(Object.keys(ALL).map(name => [name, made])) });
    await scene.done('r1');
    assert.deepEqual(await snapshot(scene.host, ...FOLDERS), before);
    await agent.stop();
  });
});

test('CAs are copied into Secrets once, with the dates of spec 10', async () => {
  await withScene({}, async scene => {
    await scene.kube.create(CONFIG_MAPS, {
      metadata: { namespace: 'rotunda-pki', name: 'kubeadm' },
      data: { keysOnNodes: 'false' },
    });
    const agent = scene.run();
    await scene.want({ round: 'r1', publishes: ['ca', 'etcd-ca', 'front-proxy-ca'] });
    await scene.done('r1');
    const secret = await scene.kube.get(SECRETS, { namespace: 'rotunda-pki', name: 'etcd-ca' });
    assert.equal(secret.type, 'kubernetes.io/tls');
    assert.equal(secret.metadata?.annotations?.['auth.openshift.io/certificate-issuer'], 'etcd-ca');
    assert.equal(secret.metadata?.annotations?.['certificates.openshift.io/refresh-period'], '70080h0m0s');
    assert.equal(
      Buffer.from(secret.data?.['tls.key'] ?? '', 'base64').toString(),
      await scene.text(`${PKI}/etcd/ca.key`),
    );
    await agent.stop();
  });
});

test('keys stay on the nodes where that was agreed on, or nothing was', async () => {
  for (const keysOnNodes of ['true', undefined]) {
    await withScene({}, async scene => {
      const data = { ...(keysOnNodes !== undefined && { keysOnNodes }) };
      await scene.kube.create(CONFIG_MAPS, { metadata: { namespace: 'rotunda-pki', name: 'kubeadm' }, data });
      const agent = scene.run();
      await scene.want({ round: 'r1', publishes: ['ca'] });
      await scene.done('r1');
      const secret = await scene.kube.get(SECRETS, { namespace: 'rotunda-pki', name: 'ca' });
      assert.equal(secret.data?.['tls.key'], '');
      assert.match(Buffer.from(secret.data?.['tls.crt'] ?? '', 'base64').toString(), /BEGIN CERTIFICATE/);
      await agent.stop();
    });
  }
});

test('a hand-over of every CA, from separating the roles to putting them together again', async () => {
  await withScene({}, async scene => {
    const agent = scene.run();
    const { signers } = scene;
    await scene.whole();
    const next = await publishNext(scene.kube, NOW);
    const old = { ca: signers.ca, 'etcd-ca': signers['etcd-ca'], 'front-proxy-ca': signers['front-proxy-ca'] };
    const wanted = (pick: (name: keyof typeof old) => readonly CertificateAndKey[]) =>
      Object.fromEntries(
        (['ca', 'etcd-ca', 'front-proxy-ca'] as const).map(name => [name, scene.signer(...pick(name))]),
      );

    await scene.want({ round: 'separate', isSeparate: true, signers: wanted(name => [old[name]]) });
    let report = await scene.done('separate');
    assert.equal(report.signing?.isSeparate, true);
    assert.match(
      await scene.text(manifest('kube-controller-manager')),
      /cluster-signing-cert-file=\/etc\/kubernetes\/pki\/rotunda\/signing-ca.crt/,
    );
    assert.equal((await scene.host.files.stat(`${PKI}/rotunda`))?.mode, 0o700);

    await scene.want({ round: 'distribute', isSeparate: true, signers: wanted(name => [old[name], next[name]]) });
    report = await scene.done('distribute');
    for (const [process, name] of [
      ['kube-controller-manager', 'ca'],
      ['kube-scheduler', 'ca'],
      ['kubelet', 'ca'],
      ['etcd', 'etcd-ca'],
      ['kube-apiserver', 'etcd-ca'],
    ] as const) {
      assert.deepEqual(
        report.processes[process]?.began[name],
        [scene.signer(old[name]).signs, scene.signer(next[name]).signs],
        process,
      );
    }
    assert.equal(report.signers.ca?.key, 'fits');
    assert.match(
      Buffer.from(
        /certificate-authority-data: (.*)/.exec(await scene.text('/etc/kubernetes/admin.conf'))?.[1] ?? '',
        'base64',
      ).toString(),
      /END CERTIFICATE-----\n-----BEGIN CERT/,
    );

    scene.clock.jumpTo(new Date(scene.clock.now().getTime() + 60_000));
    const leaves = Object.fromEntries(Object.keys(ALL).map(name => [name, scene.clock.now().toISOString()]));
    await scene.want({ round: 'sign', isSeparate: true, signers: wanted(name => [next[name], old[name]]), leaves });
    report = await scene.done('sign');
    assert.deepEqual(report.signing, { ca: scene.signer(next.ca).signs, isSeparate: true });
    assert.equal(readCertificates(await scene.text(`${PKI}/rotunda/signing-ca.crt`)).certificates.length, 1);
    for (const { name, signer } of KUBEADM_CHAINS) {
      assert.equal(report.leaves[name]?.issuer, next[signer].chain[0]?.subjectKeyId?.toString('hex'), name);
    }
    assert.deepEqual(report.signers['etcd-ca'], {
      cas: [scene.signer(next['etcd-ca']).signs, scene.signer(old['etcd-ca']).signs],
      key: 'fits',
      ends: '2036-02-27T00:00:00Z',
    });

    await scene.want({ round: 'retire', isSeparate: true, signers: wanted(name => [next[name]]), leaves });
    await scene.done('retire');
    await scene.want({ round: 'join', signers: wanted(name => [next[name]]), leaves });
    report = await scene.done('join');
    assert.deepEqual(report.signing, { ca: scene.signer(next.ca).signs, isSeparate: false });
    assert.ok(Object.values(report.processes).every(({ behind }) => behind.length === 0));
    assert.equal(await scene.host.files.stat(`${PKI}/rotunda`), undefined);
    assert.match(
      await scene.text(manifest('kube-controller-manager')),
      /cluster-signing-cert-file=\/etc\/kubernetes\/pki\/ca.crt/,
    );
    await agent.stop();
  });
});

test('a hand-over that is taken back leaves every byte and every mode as it was (KA-12)', async () => {
  await withScene({}, async scene => {
    const before = await snapshot(scene.host, ...FOLDERS);
    const agent = scene.run();
    await scene.whole();
    const next = await publishNext(scene.kube, NOW);
    const { ca, 'etcd-ca': etcd } = scene.signers;
    await scene.want({
      round: '1',
      isSeparate: true,
      signers: { ca: scene.signer(ca), 'etcd-ca': scene.signer(etcd) },
    });
    await scene.done('1');
    await scene.want({
      round: '2',
      isSeparate: true,
      signers: { ca: scene.signer(ca, next.ca), 'etcd-ca': scene.signer(etcd, next['etcd-ca']) },
    });
    await scene.done('2');
    assert.notDeepEqual(await snapshot(scene.host, ...FOLDERS), before);
    await scene.want({
      round: '3',
      isSeparate: true,
      signers: { ca: scene.signer(ca), 'etcd-ca': scene.signer(etcd) },
    });
    await scene.done('3');
    await scene.want({ round: '4', signers: { ca: scene.signer(ca), 'etcd-ca': scene.signer(etcd) } });
    const report = await scene.done('4');
    assert.deepEqual(await snapshot(scene.host, ...FOLDERS), before);
    assert.ok(Object.values(report.processes).every(({ behind }) => behind.length === 0));
    assert.deepEqual(report.processes['kube-scheduler']?.began.ca, [scene.signer(ca).signs]);
    await agent.stop();
  });
});

test('a leaf that was renewed in the meantime is not lost when a hand-over is taken back', async () => {
  await withScene({}, async scene => {
    const agent = scene.run();
    await scene.whole();
    const before = await scene.text('/etc/kubernetes/admin.conf');
    const next = await publishNext(scene.kube, NOW);
    const { ca } = scene.signers;
    await scene.want({ round: '1', isSeparate: true, signers: { ca: scene.signer(ca, next.ca) } });
    await scene.done('1');
    await scene.want({
      round: '2',
      isSeparate: true,
      signers: { ca: scene.signer(ca, next.ca) },
      leaves: { 'admin.conf': scene.clock.now().toISOString() },
    });
    const { leaves } = await scene.done('2');
    await scene.want({ round: '3', signers: { ca: scene.signer(ca) } });
    const report = await scene.done('3');
    assert.equal(report.leaves['admin.conf']?.digest, leaves['admin.conf']?.digest);
    const authorities = (text: string) => /certificate-authority-data: .*/.exec(text)?.[0];
    assert.equal(authorities(await scene.text('/etc/kubernetes/admin.conf')), authorities(before));
    await agent.stop();
  });
});

test('the keys of service accounts: both are accepted, then the other one signs, then the first goes', async () => {
  await withScene({}, async scene => {
    const agent = scene.run();
    await scene.whole();
    const { old, next } = await publishNextKey(scene.kube);
    const oldDigest = old.digest;
    await scene.want({ round: '1', serviceAccount: { publicKeys: old.public + next.public, signs: oldDigest } });
    let { serviceAccount } = await scene.done('1');
    assert.equal(serviceAccount?.accepts.length, 2);
    const nextDigest = serviceAccount?.accepts[1] ?? '';
    assert.deepEqual([scene.starts.get('kube-apiserver'), scene.starts.get('kube-controller-manager')], [2, 1]);
    await scene.want({ round: '2', serviceAccount: { publicKeys: next.public + old.public, signs: nextDigest } });
    ({ serviceAccount } = await scene.done('2'));
    assert.deepEqual(serviceAccount, { signs: nextDigest, accepts: [nextDigest, oldDigest] });
    assert.equal(await scene.text(`${PKI}/sa.key`), next.private);
    assert.deepEqual([scene.starts.get('kube-apiserver'), scene.starts.get('kube-controller-manager')], [3, 2]);
    await scene.want({ round: '3', serviceAccount: { publicKeys: next.public, signs: nextDigest } });
    ({ serviceAccount } = await scene.done('3'));
    assert.deepEqual(serviceAccount?.accepts, [nextDigest]);
    assert.equal(scene.starts.get('kube-apiserver'), 4);
    // Nothing of ours is left but the files of another key.
    assert.doesNotMatch(await scene.text(manifest('kube-apiserver')), /rotunda/);
    assert.deepEqual(
      [...(await snapshot(scene.host, PKI)).keys()].filter(path => /rotunda/.test(path)),
      [],
    );
    await agent.stop();
  });
});

test('the keys of service accounts are copied into their Secret, byte for byte, unless keys stay on nodes', async () => {
  await withScene({}, async scene => {
    const agent = scene.run();
    await scene.whole();
    const record = { namespace: 'rotunda-pki', name: 'kubeadm' };
    await scene.kube.create(CONFIG_MAPS, { metadata: record, data: { keysOnNodes: 'true' } });
    await scene.want({ round: '1', publishes: ['sa'] });
    await scene.problem(/keys stay on the nodes/);
    await scene.kube.patch(CONFIG_MAPS, record, { type: 'merge', body: { data: { keysOnNodes: 'false' } } });
    await scene.want({ round: '2', publishes: ['sa'] });
    await scene.done('2');
    const { data } = await scene.kube.get(SECRETS, { namespace: 'rotunda-pki', name: 'service-account-keys' });
    for (const file of ['sa.key', 'sa.pub'])
      assert.equal(Buffer.from(data?.[file] ?? '', 'base64').toString(), await scene.text(`${PKI}/${file}`));
    await agent.stop();
  });
});

test('a process that began in the second in which its file was written is started once more, and that is the end', async () => {
  await withScene({}, async scene => {
    const agent = scene.run();
    await scene.whole();
    const before = await snapshot(scene.host, '/etc/kubernetes/manifests');
    const { old, next } = await publishNextKey(scene.kube);
    await scene.want({ round: '1', serviceAccount: { publicKeys: old.public + next.public, signs: old.digest } });
    await scene.done('1');
    // As late in a second as can be, so that whatever begins in it seems to be older than the file.
    scene.clock.jumpTo(new Date(Math.ceil(scene.clock.now().getTime() / 1000) * 1000 + 10_999));
    await scene.want({ round: '2', serviceAccount: { publicKeys: `${old.public}\n`, signs: old.digest } });
    const { processes } = await scene.done('2');
    assert.deepEqual(processes['kube-apiserver']?.behind, []);
    assert.deepEqual(await snapshot(scene.host, '/etc/kubernetes/manifests'), before);
    await agent.stop();
  });
});

test('other keys for service accounts, taken back before one signs: every byte is as before', async () => {
  await withScene({}, async scene => {
    const agent = scene.run();
    await scene.whole();
    const before = await snapshot(scene.host, ...FOLDERS);
    const { old, next } = await publishNextKey(scene.kube);
    await scene.want({ round: '1', serviceAccount: { publicKeys: old.public + next.public, signs: old.digest } });
    await scene.done('1');
    await scene.want({ round: '2', serviceAccount: { publicKeys: old.public, signs: old.digest } });
    const { processes } = await scene.done('2');
    assert.deepEqual(await snapshot(scene.host, ...FOLDERS), before);
    assert.deepEqual(processes['kube-apiserver']?.behind, []);
    assert.equal(scene.starts.get('kube-apiserver'), 3);
    await agent.stop();
  });
});

for (const [what, from, to, pattern] of [
  [
    'a second file of public keys',
    /--service-account-key-file=\S+/,
    '$&\n    - --service-account-key-file=/etc/other.pub',
    /no other, found .* and \/etc\/other.pub/,
  ],
  [
    'an issuer outside',
    /--service-account-signing-key-file=\S+/,
    '$&\n    - --service-account-issuer=https://issuer.example',
    /issuer=https:\/\/issuer.example: whoever verifies/,
  ],
  [
    'a key elsewhere',
    /--service-account-signing-key-file=\S+/,
    '--service-account-signing-key-file=/etc/other.key',
    /must have --service-account-signing-key-file=.*sa.key and no other/,
  ],
] as const) {
  test(`with ${what} nothing of the keys of service accounts is written`, async () => {
    await withScene({}, async scene => {
      const text = (await scene.text(manifest('kube-apiserver'))).replace(from, to);
      await scene.host.files.write(manifest('kube-apiserver'), Buffer.from(text), { mode: 0o600 });
      const agent = scene.run();
      await scene.whole();
      const before = await snapshot(scene.host, ...FOLDERS);
      const { old, next } = await publishNextKey(scene.kube);
      await scene.want({ round: '1', serviceAccount: { publicKeys: old.public + next.public, signs: old.digest } });
      await scene.problem(pattern);
      assert.deepEqual(await snapshot(scene.host, ...FOLDERS), before);
      await agent.stop();
    });
  });
}

test('a worker gets both CAs, and later a certificate that it has asked for', async () => {
  await withScene({ role: 'worker' }, async scene => {
    const agent = scene.run();
    const report = await scene.whole();
    const next = await publishNext(scene.kube, NOW);
    const { ca } = scene.signers;
    await scene.want({ round: '1', signers: { ca: scene.signer(ca, next.ca) } });
    const told = await scene.done('1');
    assert.deepEqual(told.processes['kubelet']?.began.ca, [scene.signer(ca).signs, scene.signer(next.ca).signs]);
    scene.requestsSigner = next.ca;
    await scene.want({
      round: '2',
      signers: { ca: scene.signer(next.ca, ca) },
      leaves: { 'kubelet.conf': scene.clock.now().toISOString() },
    });
    const renewed = await scene.done('2');
    assert.notEqual(renewed.leaves['kubelet.conf']?.digest, report.leaves['kubelet.conf']?.digest);
    assert.equal(renewed.leaves['kubelet.conf']?.issuer, next.ca.chain[0]?.subjectKeyId?.toString('hex'));
    assert.equal(scene.host.asked.length, 2);
    await agent.stop();
  });
});
