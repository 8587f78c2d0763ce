import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { createServer } from 'node:tls';
import fc from 'fast-check';
import { load } from 'js-yaml';
import { memoryHost } from '../../host/memory.ts';
import { days } from '../../kube/duration.ts';
import { listenOn } from '../../kube/listen.ts';
import { issueServing, issueSigner } from '../../pki/issue.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { shakeHands } from '../../trust/handshake.ts';
import { readBundle } from './bundle.ts';
import { Kubeconfig } from './kubeconfig.ts';
import { decideOnConnectionError, isAboutCertificates, KubeletRestart } from './kubelet.ts';
import { BOOTSTRAP_KUBECONFIG, KUBELET, KUBELET_RESTART_RECORD, LIVE_KUBECONFIG } from './paths.ts';
import type { CertificateProblem } from './problem.ts';
import { decideServerCa, ensureServerCa, restartForKnownServerCa } from './server-ca.ts';
import { authoritiesOf, ca, installKubelet, kubeconfigText } from './testing.ts';

const A = await ca('kube-apiserver-service-network-signer');
const B = await ca('example-root');
const LOCALHOST = await ca('openshift-kube-apiserver-operator_localhost-recovery-serving-signer@1700000000');
const LB = await ca('kube-apiserver-lb-signer');
const BROKEN = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const RESTART = ['stop kubelet.service', 'daemon-reload', 'start kubelet.service'];

describe('what a kubeconfig needs', () => {
  const table: [what: string, wanted: string, current: string, write: boolean, restart: string][] = [
    ['the same', A + B, A + B, false, 'none'],
    ['another order', B + A, A + B, false, 'none'],
    ['other spacing', `${A}\n\n${B}`, A.trim(), true, 'now'],
    ['a new signer', A + B, A, true, 'now'],
    ['a signer of the localhost endpoint', A + LOCALHOST, A, true, 'deferred'],
    ['a signer of the load balancer', A + LB, A, true, 'deferred'],
    ['both kinds', A + LB + B, A, true, 'now'],
    ['one less', A, A + B, true, 'none'],
    ['one exchanged', B, A, true, 'now'],
    ['a broken piece in the middle', A + BROKEN + B, A, true, 'now'],
    ['garbage in the middle', `${A}garbage -----END CERTIFICATE-----\n${B}`, A, true, 'now'],
    ['a kubeconfig without CAs of its own', A, '', true, 'now'],
  ];
  for (const [what, wanted, current, write, restart] of table) {
    test(what, () => {
      const decision = decideServerCa(readBundle(Buffer.from(wanted)), readBundle(Buffer.from(current)));
      assert.deepEqual([decision.write, decision.restart], [write, restart]);
    });
  }
});

test('whatever the order and whatever stands in between, the set decides', () => {
  const pool = [A, B, LOCALHOST, LB];
  const noise = fc.constantFrom('', '\n', '# note\n', BROKEN, 'x -----END CERTIFICATE-----\n');
  const side = fc.array(fc.tuple(fc.nat(pool.length - 1), noise), { maxLength: 8 });
  const textOf = (parts: [number, string][]) => parts.map(([index, between]) => between + pool[index]).join('');
  fc.assert(
    fc.property(side, side, (wanted, current) => {
      const [want, have] = [new Set(wanted.map(([index]) => index)), new Set(current.map(([index]) => index))];
      const decision = decideServerCa(
        readBundle(Buffer.from(textOf(wanted))),
        readBundle(Buffer.from(textOf(current))),
      );
      assert.equal(decision.added.length, want.difference(have).size);
      assert.equal(decision.removed.length, have.difference(want).size);
      assert.equal(decision.write, want.symmetricDifference(have).size > 0);
      const isUrgent = [0, 1].some(index => want.has(index) && !have.has(index));
      assert.equal(decision.restart === 'now', isUrgent);
    }),
    { numRuns: 200 },
  );
});

test('what looks like a number stays as it is written, quoted or not (spec 60, section 17, trap 5)', () => {
  const user = [
    '    0x1f: 1e3',
    '    flag: true',
    "    name: '007'",
    '    none: null',
    '    token: 12345678901234567890123',
  ];
  const text = ['clusters:', '  - cluster:', '      server: https://x', 'user:', ...user, ''].join('\n');
  const after = new Kubeconfig(Buffer.from(text), 'x').withAuthorities('').toString();
  assert.deepEqual(
    after
      .split('\n')
      .slice(5, -1)
      .map(line => line.trim()),
    user.map(line => line.trim().replace('0x1f:', "'0x1f':")),
  );
});

test('everything else in a kubeconfig stays, known or not, and no error quotes it', () => {
  const text = kubeconfigText(A, '0123');
  const kubeconfig = new Kubeconfig(Buffer.from(text), 'x');
  const after = load(kubeconfig.withAuthorities(B).toString());
  const before = load(text) as { clusters: { cluster: Record<string, string> }[] };
  (before.clusters[0] as { cluster: Record<string, string> }).cluster['certificate-authority-data'] =
    Buffer.from(B).toString('base64');
  assert.deepEqual(after, before);
  for (const bad of ['token: hunter2: x', 'clusters: []', 'a', '', '{"clusters":[{"cluster":"hunter2"}]}']) {
    assert.throws(
      () => new Kubeconfig(Buffer.from(bad), '/the/path'),
      (error: Error) => error.message.includes('/the/path') && !error.message.includes('hunter2'),
    );
  }
});

describe('on a host', () => {
  const setUp = async (bundle = A) => {
    const host = memoryHost();
    await installKubelet(host, bundle);
    host.asked.length = 0;
    const problems: CertificateProblem[] = [];
    return { host, problems, take: (text: string) => ensureServerCa(host, Buffer.from(text), problems) };
  };

  test('a new signer is in both kubeconfigs after the kubelet was stopped and started, once', async () => {
    const { host, problems, take } = await setUp();
    const { restarted, written } = await take(A + B);
    assert.equal(restarted, true);
    assert.deepEqual(written, [BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG]);
    assert.deepEqual(host.asked, RESTART);
    for (const path of written) {
      assert.equal(await authoritiesOf(host, path), (A + B).trimEnd());
      assert.equal((await host.files.stat(path))?.mode, 0o600);
    }
    assert.deepEqual(await take(B + A), { written: [], restarted: false, isHeld: false, kept: 0 });
    assert.deepEqual([host.asked.length, problems.length], [RESTART.length, 0]);
    assert.deepEqual(await host.files.list('/var/lib/kubelet'), ['kubeconfig']);
    assert.equal(await host.files.read(KUBELET_RESTART_RECORD), undefined);
  });

  test('a removal is written without a restart', async () => {
    const { host, take } = await setUp(A + B);
    assert.equal((await take(A)).restarted, false);
    assert.deepEqual(host.asked, []);
    assert.equal(await authoritiesOf(host, LIVE_KUBECONFIG), A.trimEnd());
  });

  test('a deferred signer is written, and remembered over a restart of the agent, until it is needed', async () => {
    const { host, take } = await setUp();
    assert.equal((await take(A + LB)).restarted, false);
    assert.deepEqual(host.asked, []);
    const kubelet = new KubeletRestart(host);
    assert.equal(await kubelet.due(), 'deferred');
    assert.equal(decideOnConnectionError(await kubelet.due(), new Error('read ECONNRESET')).restartsKubelet, false);
    assert.equal(decideOnConnectionError(await kubelet.due(), new Error('x509: expired')).restartsKubelet, true);
    await restartForKnownServerCa(host);
    assert.deepEqual(host.asked, RESTART);
    assert.equal(await kubelet.due(), 'none');
    assert.equal(await authoritiesOf(host, LIVE_KUBECONFIG), (A + LB).trimEnd());
  });

  test('a reboot makes a recorded restart needless, and a record that cannot be read does not', async () => {
    const { host, take } = await setUp();
    await take(A + LB);
    await host.reboot('test');
    const kubelet = new KubeletRestart(host);
    assert.equal(await kubelet.due(), 'none');
    assert.equal(await host.files.read(KUBELET_RESTART_RECORD), undefined);
    await host.files.write(KUBELET_RESTART_RECORD, Buffer.from('{'));
    assert.equal(await kubelet.due(), 'now');
  });

  test('looser permissions are taken away', async () => {
    const { host, take } = await setUp();
    await host.files.chmod(BOOTSTRAP_KUBECONFIG, 0o644);
    await take(A);
    assert.equal((await host.files.stat(BOOTSTRAP_KUBECONFIG))?.mode, 0o600);
  });

  test('a node without kubeconfigs or without a kubelet has nothing to restart', async () => {
    const host = memoryHost();
    const problems: CertificateProblem[] = [];
    assert.deepEqual((await ensureServerCa(host, Buffer.from(A), problems)).written, []);
    await host.files.write(LIVE_KUBECONFIG, Buffer.from(kubeconfigText(A)));
    assert.deepEqual((await ensureServerCa(host, Buffer.from(A + B), problems)).written, [LIVE_KUBECONFIG]);
    assert.deepEqual([host.asked, problems], [[], []]);
  });

  test('a bootstrap kubeconfig that cannot be read is reported and holds nothing back', async () => {
    const { host, problems, take } = await setUp();
    await host.files.write(BOOTSTRAP_KUBECONFIG, Buffer.from('hello'));
    await assert.rejects(take(A + B), { name: 'ServerCaNotTaken' });
    assert.deepEqual(
      problems.map(({ code }) => code),
      ['InvalidKubeconfig'],
    );
    assert.equal(await authoritiesOf(host, LIVE_KUBECONFIG), (A + B).trimEnd());
    assert.deepEqual(host.asked, RESTART);
    await assert.rejects(take(A + B), { name: 'ServerCaNotTaken' });
    assert.deepEqual(host.asked, RESTART);
  });

  test('a bundle without a certificate changes nothing', async () => {
    const { host, take } = await setUp();
    for (const empty of ['', '\n', 'hello', BROKEN]) await assert.rejects(take(empty), { code: 'EmptyTrustBundle' });
    assert.equal(await authoritiesOf(host, LIVE_KUBECONFIG), A);
    assert.deepEqual(host.asked, []);
  });
});

describe('the CA that the node reaches the API with stays until it is done without (spec 90, HO-8)', async () => {
  const made = (commonName: string) =>
    issueSigner({ commonName, keys: seededKeys(commonName), now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' });
  const signers = { old: await made('old'), new: await made('new'), other: await made('other') };
  const pem = (name: keyof typeof signers) => encodeCertificates(signers[name].chain);

  /** An API server on loopback, with a certificate of whom one likes, and a node that trusts `bundle`. */
  const setUp = async (t: TestContext, bundle: string) => {
    const pairOf = async (signer: keyof typeof signers) => {
      const issued = { keys: seededKeys(signer), now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' } as const;
      const { chain, key } = await issueServing({ ...issued, signer: signers[signer], hostnames: ['api-int'] });
      return { cert: encodeCertificates(chain), key: encodePrivateKey(key) };
    };
    const server = createServer(await pairOf('old'));
    server.on('tlsClientError', () => {});
    const port = await listenOn(server, 0, '127.0.0.1').then(() => (server.address() as AddressInfo).port);
    t.after(() => server.close());
    const host = memoryHost();
    await installKubelet(host, bundle);
    for (const path of [LIVE_KUBECONFIG, BOOTSTRAP_KUBECONFIG]) {
      const text = kubeconfigText(bundle).replace(
        'server: https://api-int:6443',
        `server: https://127.0.0.1:${port}\n      tls-server-name: api-int`,
      );
      await host.files.write(path, Buffer.from(text), { mode: 0o600 });
    }
    host.asked.length = 0;
    return {
      host,
      show: async (signer: keyof typeof signers) => server.setSecureContext(await pairOf(signer)),
      close: () => new Promise(resolve => server.close(resolve)),
      take: (text: string) => ensureServerCa(host, Buffer.from(text), [], shakeHands),
      trusts: async () => {
        const texts = await Promise.all([LIVE_KUBECONFIG, BOOTSTRAP_KUBECONFIG].map(path => authoritiesOf(host, path)));
        const names = texts.map(text => readBundle(Buffer.from(text)).certificates.map(one => one.subject.commonName));
        assert.deepEqual(names[0], names[1]);
        return names[0]?.join();
      },
    };
  };

  test('while the API server shows the old one it stays, and what else has left does not', async t => {
    const { host, show, take, trusts } = await setUp(t, pem('old') + pem('other'));
    assert.equal((await take(pem('new'))).kept, 1);
    assert.equal(await trusts(), 'new,old');
    assert.deepEqual(host.asked, RESTART);
    assert.deepEqual(await take(pem('new')), { written: [], restarted: false, isHeld: false, kept: 1 });
    await show('new');
    assert.equal((await take(pem('new'))).kept, 0);
    assert.equal(await trusts(), 'new');
    assert.deepEqual(host.asked, RESTART, 'that asks for no restart');
  });

  test('when nobody answers, nothing is given up', async t => {
    const { close, take, trusts } = await setUp(t, pem('old') + pem('other'));
    await close();
    assert.equal((await take(pem('new'))).kept, 2);
    assert.equal(await trusts(), 'new,old,other');
  });

  test('what no CA of the file would believe keeps none of them', async t => {
    const { show, take, trusts } = await setUp(t, pem('old'));
    await show('other');
    assert.equal((await take(pem('new'))).kept, 0);
    assert.equal(await trusts(), 'new');
  });

  test('a restart that was put off keeps it too', async t => {
    const { host, take, trusts } = await setUp(t, pem('old'));
    await take(pem('new'));
    await new KubeletRestart(host).record('deferred');
    await restartForKnownServerCa(host, shakeHands);
    assert.equal(await trusts(), 'new,old');
  });

  test('nobody is asked where nothing leaves, and where no certificate is checked', async () => {
    const host = memoryHost();
    await installKubelet(host, A);
    const never = () => Promise.reject(new Error('asked'));
    assert.equal((await ensureServerCa(host, Buffer.from(A + B), [], never)).kept, 0);
    for (const path of [LIVE_KUBECONFIG, BOOTSTRAP_KUBECONFIG])
      await host.files.write(path, Buffer.from(kubeconfigText(A + B).replace('https:', 'http:')));
    assert.equal((await ensureServerCa(host, Buffer.from(B), [], never)).kept, 0);
  });
});

test('errors that mean that a certificate was not believed', () => {
  const verdict = Object.assign(new Error('self-signed certificate in chain'), { code: 'SELF_SIGNED_CERT_IN_CHAIN' });
  const table: [unknown, boolean][] = [
    [new Error('Get "https://x": X509: unknown authority'), true],
    ['x509: certificate has expired', true],
    [verdict, true],
    [new Error('no answer', { cause: new Error('deeper', { cause: verdict }) }), true],
    [Object.assign(new Error('reset'), { code: 'ECONNRESET' }), false],
    [undefined, false],
  ];
  for (const [error, expected] of table) assert.equal(isAboutCertificates(error), expected);
  assert.equal(decideOnConnectionError('none', verdict).restartsKubelet, false);
  assert.ok(KUBELET.endsWith('.service'));
});
