/** An agent that dies before any of its operations on the host is followed by one that comes to the same end (spec 80, KA-12). */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { isReading, observed } from '../../../src/host/memory.ts';
import { belongsTo } from '../../../src/kubeadm/node/leaf.ts';
import type { Wanted } from '../../../src/kubeadm/wanted.ts';
import { readCertificates, readPrivateKey } from '../../../src/pki/pem.ts';
import { snapshot } from './kubeadm-node.ts';
import { type Scene, withScene } from './scene.ts';

const MOST_OPERATIONS = 400;
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
