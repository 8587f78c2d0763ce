import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { startLocalCluster } from '../../src/local/cluster.ts';
import { temporaryDirectory } from './cluster.ts';

test('the API keeps its port over restarts, and takes another when somebody has it', async t => {
  const options = { dir: temporaryDirectory(t), controlPlane: 1, workers: 0, parts: [] };
  const run = async () => {
    const cluster = await startLocalCluster(options);
    await cluster.ready();
    const { url } = cluster.api;
    await cluster.close();
    return url;
  };
  const first = await run();
  assert.equal(await run(), first);
  const squatter = createServer().listen(Number(new URL(first).port), '127.0.0.1');
  await once(squatter, 'listening');
  t.after(() => squatter.close());
  assert.notEqual(await run(), first);
});
