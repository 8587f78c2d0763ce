import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { CacheHandlers } from '../../kube/cache.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { MACHINE_CONFIGS } from '../../machine-config-api/machine-config.ts';
import { ConfigSource } from './config-source.ts';
import { OwnNode } from './own-node.ts';

/** What an informer does for one node. */
class Source {
  #node: Node = { metadata: { name: 'n' } };
  readonly handlers = new Set<CacheHandlers<Node>>();

  get(): Node {
    return this.#node;
  }

  subscribe(handlers: CacheHandlers<Node>): () => void {
    this.handlers.add(handlers);
    handlers.add?.(this.#node);
    return () => this.handlers.delete(handlers);
  }

  annotate(annotations: Record<string, string>): void {
    const before = this.#node;
    this.#node = { metadata: { name: 'n', annotations } };
    for (const handlers of this.handlers) handlers.update?.(before, this.#node);
  }
}

test('waits for the node to be so, told by the watch; not for ever, and not after a stop', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const source = new Source();
  const node = new OwnNode('n', source, clock);
  const isMarked = ({ metadata }: Node) => metadata?.annotations?.['mark'] === 'x';
  const never = new AbortController().signal;

  const late = node.until(isMarked, minutes(10), never);
  await clock.advance(minutes(10));
  assert.equal(await late, false);

  const stop = new AbortController();
  const stopped = node.until(isMarked, minutes(10), stop.signal);
  stop.abort(new Error('the agent ends'));
  await assert.rejects(stopped, /the agent ends/);

  const seen = node.until(isMarked, minutes(10), never);
  source.annotate({ mark: 'x' });
  assert.equal(await seen, true);
  assert.equal(await node.until(isMarked, seconds(1), never), true);
  assert.deepEqual([node.annotations()['mark'], source.handlers.size, clock.nextWait()], ['x', 0, undefined]);
});

test('configs are asked for when they are needed, missing ones are counted, and the one on the disk is at hand', async () => {
  const kube = new MemoryKube();
  let asked = 0;
  const counting = new Proxy(kube, {
    get(target, name: keyof MemoryKube) {
      if (name === 'get') asked++;
      const member = target[name] as unknown;
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
  let missing: readonly string[] = [];
  const configs = new ConfigSource(counting, { missingConfigs: names => (missing = names) });
  await kube.create(MACHINE_CONFIGS, { metadata: { name: 'a' } });
  const first = await configs.among(['a', 'b', undefined]);
  assert.deepEqual([first('a'), first('b'), missing, asked], [true, false, ['b'], 2]);
  const onDisk = await configs.among(['a', 'b'], { config: { metadata: { name: 'b' } } });
  assert.deepEqual([onDisk('a'), onDisk('b'), missing, asked], [true, true, [], 2]);
  assert.equal((await configs.get('a'))?.metadata?.name, 'a');
  assert.equal(asked, 2);
  configs.forget();
  await configs.get('a');
  assert.equal(asked, 3);
});
