import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { startEngine } from '../../api/engine.ts';
import { bundleOf, secretOf, testClient, testSigner } from '../../inventory/testing.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NAMESPACES, SECRETS } from '../../kube/resource.ts';
import { Feed, type FeedMessage } from './feed.ts';
import { isRefusing, type Patch, type Snapshot } from './model.ts';

async function startKube(t: TestContext): Promise<Kube> {
  const { kube, close } = await startEngine();
  t.after(() => close());
  await kube.create(NAMESPACES, { metadata: { name: 'ns' } });
  return kube;
}

async function feedOver(t: TestContext, kube: Kube): Promise<Feed> {
  const feed = new Feed({ kube, server: 'https://cluster' });
  t.after(() => feed.stop());
  await feed.start();
  return feed;
}

function nextPatch(feed: Feed, is: (patch: Patch) => boolean): Promise<FeedMessage> {
  return new Promise(resolve => {
    const stop = feed.subscribe(message => {
      if (!is(JSON.parse(message.data) as Patch)) return;
      stop();
      resolve(message);
    });
  });
}

describe('the live model', () => {
  test('a change is told as the items that changed, and as what happened', async t => {
    const kube = await startKube(t);
    const signer = await testSigner('signer');
    await kube.create(SECRETS, secretOf('signer', signer, 'signer'));
    await kube.create(SECRETS, secretOf('leaf', await testClient(signer, 'user'), 'target'));
    const feed = await feedOver(t, kube);
    const { sections } = JSON.parse(feed.snapshot().data) as Snapshot;
    assert.deepEqual(
      sections.certificates.map(({ metadata }) => metadata.name),
      ['leaf', 'signer'],
    );
    const told = nextPatch(feed, ({ set }) => set.bundles !== undefined);
    await kube.create(CONFIG_MAPS, bundleOf('ca', signer));
    const patch = JSON.parse((await told).data) as Patch;
    assert.deepEqual(
      patch.set.bundles?.map(({ metadata }) => metadata.name),
      ['ca'],
    );
    // The leaf is trusted through it from now on; the signer, which signed itself, too.
    assert.deepEqual(
      patch.set.certificates?.map(({ metadata }) => metadata.name),
      ['leaf', 'signer'],
    );
    assert.deepEqual(
      patch.set.changes?.map(({ what }) => what),
      ['BundleChanged'],
    );
    assert.equal(patch.set.nodes, undefined);
  });

  test('who was away hears what was missed; who was away too long starts again', async t => {
    const kube = await startKube(t);
    const feed = await feedOver(t, kube);
    const { id } = feed.snapshot();
    assert.deepEqual(feed.since(id), []);
    const told = nextPatch(feed, ({ set }) => set.bundles !== undefined);
    await kube.create(CONFIG_MAPS, bundleOf('ca', await testSigner('signer')));
    const patch = await told;
    assert.deepEqual(feed.since(id)?.at(-1), patch);
    assert.deepEqual(feed.since(patch.id), []);
    assert.equal(feed.since('somebody-else-1'), undefined);
  });

  test('a refusal counts while it is not older than the last acceptance', () => {
    const refusal = { by: 'server', reason: 'x', from: 'a', to: 'b', lastAt: '2026-01-01T00:00:00Z' };
    assert.equal(isRefusing({ refusals: [] }), false);
    assert.equal(isRefusing({ refusals: [refusal] }), true);
    assert.equal(isRefusing({ refusals: [refusal], lastAcceptedAt: '2026-01-01T00:00:02Z' }), true, 'one way of two');
    assert.equal(isRefusing({ refusals: [refusal], lastAcceptedAt: '2026-01-01T00:01:00Z' }), false);
  });
});
