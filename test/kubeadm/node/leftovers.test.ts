/** Whoever is killed in the middle of a write leaves a temporary file, and what is written here are keys: the next agent removes it. */
import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { test } from 'node:test';
import { observed } from '../../../src/host/memory.ts';
import { KUBEADM_CHAINS } from '../../../src/kubeadm/chains.ts';
import { PKI, publishNext } from './kubeadm-node.ts';
import { withScene } from './scene.ts';

test('wherever an agent has written, the next one looks for what a killed write left', async () => {
  await withScene({}, async scene => {
    const [written, swept] = [new Set<string>(), new Set<string>()];
    const watched = observed(scene.host, ({ name, args }) => {
      const [first, second] = args as [string, string];
      if (name === 'files.write') written.add(first);
      if (name === 'files.copy' || name === 'files.symlink') written.add(second);
      if (name === 'files.removeLeftovers') swept.add(first);
    });
    const first = scene.run(watched);
    await scene.whole();
    const next = await publishNext(scene.kube, scene.clock.now());
    const { ca, 'etcd-ca': etcd } = scene.signers;
    scene.clock.jumpTo(new Date(scene.clock.now().getTime() + 60_000));
    const from = scene.clock.now().toISOString();
    await scene.want({
      round: 'all of it',
      isSeparate: true,
      signers: { ca: scene.signer(ca, next.ca), 'etcd-ca': scene.signer(etcd, next['etcd-ca']) },
      leaves: Object.fromEntries(KUBEADM_CHAINS.map(({ name }) => [name, from])),
    });
    await scene.done('all of it');
    await first.stop();
    assert.ok(written.has(`${PKI}/rotunda/signing-ca.key.rotunda-next`), [...written].join('\n'));
    assert.ok([...written].some(path => path.startsWith(`${PKI}/rotunda/before/`)));
    swept.clear();
    const second = scene.run(watched);
    await scene.rest();
    await second.stop();
    const missed = [...written].filter(path => !swept.has(path) && !swept.has(`${posix.dirname(path)}/*`));
    assert.deepEqual(missed, []);
  });
});
