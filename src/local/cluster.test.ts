import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLog } from '../controller/log.ts';
import { ConnectionError } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import { NODES, type Resource } from '../kube/resource.ts';
import { startLocalCluster } from './cluster.ts';
import { type ClusterApi, embeddedApi } from './cluster-api.ts';
import { kubeletPart } from './kubelet-part.ts';
import type { ClusterPart } from './part.ts';

/** Some requests find nobody, and so does the first one for each Secret and Node. */
function flaky(kube: Kube): Kube {
  let asked = 0;
  const known = new Set<string>();
  const isAsked = new Set(['get', 'list', 'create', 'update', 'patch']);
  return new Proxy(kube, {
    get(target, verb: keyof Kube) {
      const work = (target[verb] as (...args: unknown[]) => unknown).bind(target);
      if (!isAsked.has(verb)) return work;
      return async (...args: unknown[]) => {
        const [{ plural }, { name }] = args as [Resource, { name?: string }];
        const isFirst = verb === 'get' && /^(secrets|nodes)$/.test(plural) && !known.has(`${plural}/${name}`);
        known.add(`${plural}/${name}`);
        if (isFirst || [1, 7, 30, 31].includes(++asked))
          throw new ConnectionError('ECONNREFUSED', `nobody listens to ${verb}`);
        return work(...args);
      };
    },
  });
}

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-cluster-'));
  t.after(() => rmSync(dir, { recursive: true, force: true, maxRetries: 3 }));
  return dir;
}

/** Asks for what is there, as parts do when they start. */
const asking: ClusterPart = {
  name: 'asking',
  async start({ kube, patiently, signal }) {
    const found = await patiently(() => kube.get(NODES, { name: 'master-0' }));
    const ended = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }));
    return { ended, state: () => ({ ready: true, text: found.metadata?.name ?? '' }) };
  },
};

test('a cluster whose API goes away again and again while it starts comes up', async t => {
  const dir = folder(t);
  const api = async (place: string): Promise<ClusterApi> => {
    const embedded = await embeddedApi({ dir: place, port: 0, podLogs: undefined, log: silentLog });
    return { ...embedded, kube: flaky(embedded.kube) };
  };
  const cluster = await startLocalCluster({ dir, controlPlane: 1, workers: 0, api, parts: [asking, kubeletPart] });
  try {
    assert.deepEqual(
      cluster.parts().map(({ name }) => name),
      ['nodes', 'asking', 'kubelets'],
    );
  } finally {
    await cluster.close();
  }
});

test('a start that waits for its API ends when it is told to', async t => {
  const stop = new AbortController();
  const api = async (place: string): Promise<ClusterApi> => {
    const embedded = await embeddedApi({ dir: place, port: 0, podLogs: undefined, log: silentLog });
    const away = async () => {
      setImmediate(() => stop.abort(new Error('told to stop')));
      throw new ConnectionError('ECONNREFUSED', 'nobody listens');
    };
    return { ...embedded, settled: away };
  };
  const start = startLocalCluster({ dir: folder(t), controlPlane: 1, workers: 0, api, parts: [], signal: stop.signal });
  await assert.rejects(start, /told to stop/);
});
