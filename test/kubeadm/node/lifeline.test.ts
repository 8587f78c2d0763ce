/** What an agent does alone when the API cannot be asked because of certificates of its node that have ended (spec 80, 5). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { days, minutes } from '../../../src/kube/duration.ts';
import { ConnectionError } from '../../../src/kube/error.ts';
import { KUBELET_PEM, PKI, snapshot } from './kubeadm-node.ts';
import { type Scene, withScene } from './scene.ts';

const LEAF_DAYS = 100;
const FOLDERS = ['/etc/kubernetes', '/var/lib/kubelet'];
const LIFELINE = ['apiserver', 'apiserver-etcd-client', 'etcd/server', 'etcd/peer'];

test('what kube-apiserver and etcd cannot do without is made anew where nobody answers, and is due at once', async () => {
  await withScene({ leafDays: LEAF_DAYS }, async scene => {
    const before = new Map(await certificates(scene));
    endAll(scene);
    let isSilent = true;
    const agent = scene.run(scene.host, () => {
      if (isSilent) throw new ConnectionError('CERT_HAS_EXPIRED', 'certificate has expired');
    });
    const now = +scene.clock.now();
    await scene.until('another certificate of kube-apiserver', async () => {
      return (await scene.certificate(`${PKI}/apiserver.crt`)).notAfter > scene.clock.now();
    });
    for (const [name, { notBefore, notAfter, dnsNames, extKeyUsages }] of await certificates(scene)) {
      const old = before.get(name);
      assert.ok(old !== undefined);
      if (!LIFELINE.includes(name)) {
        assert.deepEqual(notAfter, old.notAfter, name);
        continue;
      }
      assert.equal(+notAfter - +notBefore, +old.notAfter - +old.notBefore, name);
      // Good for an earlier clock than this one, and due by the one of whoever looks after it.
      assert.ok(Math.abs(+notBefore + (days(LEAF_DAYS) * 2) / 3 - now) < minutes(10), name);
      assert.deepEqual([dnsNames, extKeyUsages], [old.dnsNames, old.extKeyUsages], name);
    }
    assert.deepEqual([...scene.starts.values()], [1, 1, 1, 1]);
    isSilent = false;
    const report = await scene.whole();
    assert.ok(Date.parse(report.leaves['kubelet.conf']?.notAfter ?? '') > +scene.clock.now());
    assert.equal(report.problem, undefined);
    await agent.stop();
  });
});

test('an agent that has been there all the time does the same', async () => {
  await withScene({ leafDays: LEAF_DAYS }, async scene => {
    let isSilent = false;
    const agent = scene.run(scene.host, () => {
      if (isSilent) throw new ConnectionError('CERT_HAS_EXPIRED', 'certificate has expired');
    });
    await scene.whole();
    isSilent = true;
    endAll(scene);
    for (const name of LIFELINE) {
      await scene.until(`another ${name}`, async () => {
        return (await scene.certificate(`${PKI}/${name}.crt`)).notAfter > scene.clock.now();
      });
    }
    await agent.stop();
  });
});

test('as long as the API answers, a round is waited for; only the kubelet gets its certificate', async () => {
  await withScene({ leafDays: LEAF_DAYS }, async scene => {
    endAll(scene);
    const before = await snapshot(scene.host, ...FOLDERS);
    const agent = scene.run();
    await scene.whole();
    await scene.rest();
    const after = await snapshot(scene.host, ...FOLDERS);
    const changed = [...after].filter(([path, text]) => before.get(path) !== text).map(([path]) => path);
    assert.deepEqual(changed.length, 2, changed.join());
    assert.ok(changed.includes(KUBELET_PEM));
    await agent.stop();
  });
});

function endAll(scene: Scene): void {
  scene.clock.jumpTo(new Date(+scene.clock.now() + days(LEAF_DAYS)));
}

async function certificates(scene: Scene) {
  const files = [...(await snapshot(scene.host, PKI)).keys()].filter(path => path.endsWith('.crt'));
  return Promise.all(
    files.map(async path => [path.slice(PKI.length + 1, -'.crt'.length), await scene.certificate(path)] as const),
  );
}
