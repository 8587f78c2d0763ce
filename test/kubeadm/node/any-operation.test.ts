/** An agent that dies before any of its operations on the host is followed by one that comes to the same end (spec 80, KA-12). */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { isReading, observed } from '../../../src/host/memory.ts';
import { belongsTo } from '../../../src/kubeadm/node/leaf.ts';
import type { Wanted } from '../../../src/kubeadm/wanted.ts';
import { readCertificates, readPrivateKey } from '../../../src/pki/pem.ts';
import { publishNext, publishNextKey, snapshot } from './kubeadm-node.ts';
import { type Scene, withScene } from './scene.ts';

const MOST_OPERATIONS = 400;
const KEY = '/etc/kubernetes/pki/sa.key';
const FOLDERS = ['/etc/kubernetes', '/var/lib/kubelet'];

test('renewing leaves', async t => {
  await withScene({}, async scene => {
    const count = await dyingEverywhere(scene, async (at, live) => {
      scene.clock.jumpTo(new Date(scene.clock.now().getTime() + 10_000));
      const moment = scene.clock.now().toISOString();
      const leaves = { apiserver: moment, 'scheduler.conf': moment, 'kubelet.conf': moment };
      const isDead = await live({ round: `renew ${at}`, leaves });
      const report = await scene.report();
      for (const name of Object.keys(leaves)) {
        assert.ok(Date.parse(report?.leaves[name]?.notBefore ?? '') + 300_000 >= Date.parse(moment) - 1000, name);
        assert.equal(report?.leaves[name]?.problem, undefined);
      }
      await nothingIsLeft(scene);
      return isDead;
    });
    report(t, count);
  });
});

test('separating the roles and distributing the next CAs, and taking that back: every byte is as it was', async t => {
  await withScene({}, async scene => {
    const before = await snapshot(scene.host, ...FOLDERS);
    const next = await publishNext(scene.kube, scene.clock.now());
    const { ca, 'etcd-ca': etcd } = scene.signers;
    const count = await dyingEverywhere(scene, async (at, live) => {
      const both = { ca: scene.signer(ca, next.ca), 'etcd-ca': scene.signer(etcd, next['etcd-ca']) };
      const diedThere = await live({ round: `distribute ${at}`, isSeparate: true, signers: both });
      const told = await scene.report();
      assert.deepEqual(told?.signers.ca?.cas.length, 2);
      assert.deepEqual(told?.processes['kube-apiserver']?.began['etcd-ca']?.length, 2);
      assert.deepEqual(told?.processes['kubelet']?.began.ca?.length, 2);
      const alone = { ca: scene.signer(ca), 'etcd-ca': scene.signer(etcd) };
      const diedBack = await live({ round: `back ${at}`, signers: alone });
      assert.deepEqual(await snapshot(scene.host, ...FOLDERS), before, `operation ${at}`);
      const after = await scene.report();
      assert.ok(Object.values(after?.processes ?? {}).every(({ behind }) => behind.length === 0));
      return diedThere || diedBack;
    });
    report(t, count);
  });
});

test('signing with the next CA, and turning that round', async t => {
  await withScene({}, async scene => {
    const next = await publishNext(scene.kube, scene.clock.now());
    const { ca } = scene.signers;
    const first = scene.run();
    await scene.want({ round: 'begin', isSeparate: true, signers: { ca: scene.signer(ca, next.ca) } });
    await scene.done('begin');
    await first.stop();
    const count = await dyingEverywhere(scene, async (at, live) => {
      let isDead = false;
      for (const [signs, other] of [
        [next.ca, ca],
        [ca, next.ca],
      ] as const) {
        scene.clock.jumpTo(new Date(scene.clock.now().getTime() + 10_000));
        const leaves = { apiserver: scene.clock.now().toISOString() };
        const signers = { ca: scene.signer(signs, other) };
        const round = `sign ${at} ${signers.ca.signs.slice(0, 4)}`;
        isDead = (await live({ round, isSeparate: true, signers, leaves })) || isDead;
        const told = await scene.report();
        assert.deepEqual(told?.signing, { ca: signers.ca.signs, isSeparate: true });
        assert.deepEqual([told?.signers.ca?.cas[0], told?.signers.ca?.key], [signers.ca.signs, 'fits']);
        assert.equal(told?.leaves['apiserver']?.issuer, signs.chain[0]?.subjectKeyId?.toString('hex'));
      }
      return isDead;
    });
    report(t, count);
  });
});

test('accepting another key of service accounts, and taking that back: every byte is as it was', async t => {
  await withScene({}, async scene => {
    const before = await snapshot(scene.host, ...FOLDERS);
    const { old, next } = await publishNextKey(scene.kube);
    const count = await dyingEverywhere(scene, async (at, live) => {
      const both = { publicKeys: old.public + next.public, signs: old.digest };
      const diedThere = await live({ round: `both ${at}`, serviceAccount: both });
      assert.deepEqual((await scene.report())?.serviceAccount?.accepts, [old.digest, next.digest]);
      const diedBack = await live({
        round: `back ${at}`,
        serviceAccount: { publicKeys: old.public, signs: old.digest },
      });
      assert.deepEqual(await snapshot(scene.host, ...FOLDERS), before, `operation ${at}`);
      const after = await scene.report();
      assert.ok(Object.values(after?.processes ?? {}).every(({ behind }) => behind.length === 0));
      return diedThere || diedBack;
    });
    report(t, count);
  });
});

test('signing tokens with the next key, and turning that round', async t => {
  await withScene({}, async scene => {
    const { old, next } = await publishNextKey(scene.kube);
    const first = scene.run();
    await scene.want({
      round: 'begin',
      serviceAccount: { publicKeys: old.public + next.public, signs: old.digest },
    });
    await scene.done('begin');
    await first.stop();
    const count = await dyingEverywhere(scene, async (at, live) => {
      let isDead = false;
      for (const [signs, other] of [
        [next, old],
        [old, next],
      ] as const) {
        scene.clock.jumpTo(new Date(scene.clock.now().getTime() + 10_000));
        const serviceAccount = { publicKeys: signs.public + other.public, signs: signs.digest };
        isDead = (await live({ round: `sign ${at} ${signs.digest.slice(0, 4)}`, serviceAccount })) || isDead;
        const told = await scene.report();
        assert.deepEqual(told?.serviceAccount, { signs: signs.digest, accepts: [signs.digest, other.digest] });
        assert.equal(await scene.text(KEY), signs.private);
        assert.ok(Object.values(told?.processes ?? {}).every(({ behind }) => behind.length === 0));
      }
      return isDead;
    });
    report(t, count);
  });
});

type Live = (wanted: Partial<Wanted> & { readonly round: string }) => Promise<boolean>;

/** Plays again and again, letting the agent die one operation later each time, until it gets to the end alive. */
async function dyingEverywhere(scene: Scene, play: (at: number, live: Live) => Promise<boolean>): Promise<number> {
  for (let at = 1; at < MOST_OPERATIONS; at++) {
    if (!(await play(at, wanted => liveAndDie(scene, wanted, at)))) return at - 1;
  }
  throw new Error(`more than ${MOST_OPERATIONS} operations`);
}

/** One agent that dies before its operation of this number, and one that goes on. */
async function liveAndDie(scene: Scene, wanted: Parameters<Live>[0], at: number): Promise<boolean> {
  let [isDead, count] = [false, 0];
  const die = () => {
    if (isDead) throw new Error('this process is dead');
  };
  const dying = observed(scene.host, operation => {
    if (!isReading(operation) && ++count === at) isDead = true;
    die();
  });
  await scene.want(wanted);
  // A dead process neither writes to its disk nor to the API.
  const agent = scene.run(dying, die);
  await scene.until('it is dead, or done', async () => isDead || (await scene.report())?.done === wanted.round);
  await agent.stop();
  if (!isDead) return false;
  const successor = scene.run();
  await scene.done(wanted.round);
  await successor.stop();
  assert.equal((await scene.report())?.problem, undefined);
  return true;
}

/** No file that was begun, and no pair that does not belong together. */
async function nothingIsLeft(scene: Scene): Promise<void> {
  const files = await snapshot(scene.host, ...FOLDERS);
  assert.deepEqual(
    [...files.keys()].filter(path => /rotunda/.test(path)),
    [],
  );
  for (const path of [...files.keys()].filter(
    name => name.endsWith('.crt') && files.has(name.replace(/crt$/, 'key')),
  )) {
    const [certificate] = readCertificates(await scene.text(path)).certificates;
    const key = readPrivateKey(await scene.text(path.replace(/crt$/, 'key')));
    assert.ok(certificate !== undefined && belongsTo(key, certificate), path);
  }
}

function report(t: TestContext, count: number): void {
  assert.ok(count > 10, `${count} operations`);
  t.diagnostic(`died at each of ${count} operations`);
}
