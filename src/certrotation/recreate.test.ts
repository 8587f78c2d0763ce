import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { ConnectionError, KubeError } from '../kube/error.ts';
import { MemoryKube } from '../kube/memory.ts';
import type { Kube } from '../kube/port.ts';
import { SECRETS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { MANAGED_CERTIFICATE_TYPE } from './annotations.ts';
import { bringBack, RECREATED, SET_ASIDE_TYPE } from './recreate.ts';
import { ensureSigner } from './signer.ts';
import { ensureTarget } from './target.ts';
import { NOW, SIGNER, secretOf, TARGET, testCA, testRotation } from './testing.ts';

const ASIDE = { namespace: 'ns', name: 'signer.set-aside.rotunda.dev' };
const OWNER = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: '7' };
const NOW_TEXT = formatRfc3339(NOW);
const signer = await testCA('ns_signer@1');
const ca = secretOf(signer);
const WRONG: Secret = {
  ...ca,
  type: 'SecretTypeTLS',
  metadata: {
    ...ca.metadata,
    labels: { [MANAGED_CERTIFICATE_TYPE]: 'signer', theirs: 'l' },
    annotations: { ...ca.metadata?.annotations, theirs: 'a' },
    ownerReferences: [OWNER],
  },
  data: { ...ca.data, extra: 'eA==' },
};

describe('a Secret whose type is wrong is made anew (spec 10, Y-1, Y-2 and 8.4)', () => {
  test('labels, annotations, owners and all data stay; it says what it replaces', async () => {
    const { kube, uid } = await cluster();
    await ensureSigner(SIGNER, testRotation(kube));
    await assertWhole(kube, uid);
  });

  test('a process that is stopped after any of its calls loses nothing', async () => {
    let calls = 0;
    for (; ; calls++) {
      const { kube, uid } = await cluster();
      const stopped = new StoppedAfter(calls);
      const first = await Promise.race([ensureSigner(SIGNER, testRotation(stopped.over(kube))), stopped.happened]);
      await ensureSigner(SIGNER, testRotation(kube));
      await ensureSigner(SIGNER, testRotation(kube));
      await assertWhole(kube, uid, `after ${calls} calls`);
      if (first !== 'stopped') break;
    }
    assert.equal(calls, 7, 'read, update, look aside, set aside, delete, create, clear');
  });

  test('the recovery process brings back what a stopped one had set aside, and makes no signer of its own', async () => {
    const { kube, uid } = await cluster();
    const stopped = new StoppedAfter(5);
    await Promise.race([ensureSigner(SIGNER, testRotation(stopped.over(kube))), stopped.happened]);
    await assert.rejects(kube.get(SECRETS, SIGNER), { code: 404 });
    const result = await ensureSigner({ ...SIGNER, refreshOnlyWhenExpired: true }, testRotation(kube));
    assert.ok(result.outcome === 'ready' && !result.regenerated);
    await assertWhole(kube, uid);
  });

  test('a Secret that was changed after it was read is left to the next pass, with nothing set aside', async () => {
    const { kube } = await cluster();
    const stale = await kube.get(SECRETS, SIGNER);
    const changed = await kube.update(SECRETS, { ...stale, data: { ...stale.data, extra: 'eQ==' } });
    const rotation = testRotation(kube);
    // Real servers look at the type before they look at the version.
    const update = () => Promise.reject(new KubeError(422, 'Invalid', 'type: Invalid value: "x": field is immutable'));
    const behind = {
      ...rotation,
      kube: over(kube, { update }),
      objects: { read: async () => stale as never, wrote: () => {} },
    };
    assert.deepEqual(await ensureSigner(SIGNER, behind), { outcome: 'lost' });
    assert.deepEqual(await secrets(kube), [changed]);
  });

  const unclear = [
    new ConnectionError('ECONNRESET', 'the connection broke'),
    new KubeError(500, 'InternalError', 'etcdserver: request timed out'),
    new KubeError(504, 'Timeout', 'the request timed out'),
  ];
  for (const answer of unclear) {
    test(`the delete is answered by "${answer.message}": the copy stays, since it may be all there is`, async () => {
      const { kube, uid } = await cluster();
      const remove: Kube['delete'] = async (...call) => {
        await kube.delete(...call);
        throw answer;
      };
      await assert.rejects(ensureSigner(SIGNER, testRotation(over(kube, { delete: remove }))), answer);
      await ensureSigner(SIGNER, testRotation(kube));
      await assertWhole(kube, uid);
    });
  }

  test('another process deleted it a moment earlier: the copy stays, and nothing is lost', async () => {
    const { kube, uid } = await cluster();
    const remove: Kube['delete'] = async (...call) => {
      await kube.delete(...call);
      return kube.delete(...call);
    };
    const rotation = testRotation(over(kube, { delete: remove }));
    assert.deepEqual(await ensureSigner(SIGNER, rotation), { outcome: 'lost' });
    await ensureSigner(SIGNER, testRotation(kube));
    await assertWhole(kube, uid);
  });

  test('an update that fails for another reason is no reason to delete anything', async () => {
    const { kube } = await cluster();
    const before = await secrets(kube);
    const update = () => Promise.reject(new KubeError(403, 'Forbidden', 'not you'));
    await assert.rejects(ensureSigner(SIGNER, testRotation(over(kube, { update }))), /not you/);
    assert.deepEqual(await secrets(kube), before);
  });

  const races: [who: string, verb: 'create' | 'update', error: KubeError][] = [
    ['another process sets a copy aside', 'create', new KubeError(409, 'AlreadyExists', 'exists')],
    ['another process changes the copy', 'update', new KubeError(409, 'Conflict', 'changed')],
    ['another process clears the copy', 'update', new KubeError(404, 'NotFound', 'gone')],
  ];
  for (const [who, verb, error] of races) {
    test(`${who} meanwhile: nothing is deleted`, async () => {
      const { kube } = await cluster();
      if (verb === 'update') await kube.create(SECRETS, { metadata: ASIDE, type: SET_ASIDE_TYPE });
      const before = await secrets(kube);
      const call: Kube['create'] = (resource, object) =>
        object.metadata?.name === ASIDE.name ? Promise.reject(error) : kube[verb](resource, object);
      const rotation = testRotation(over(kube, { [verb]: call }));
      assert.deepEqual(await ensureSigner(SIGNER, rotation), { outcome: 'lost' });
      assert.deepEqual(await secrets(kube), before);
    });
  }

  test('a copy that cannot be set aside is an error, and nothing is deleted', async () => {
    const { kube } = await cluster();
    const before = await secrets(kube);
    const create = () => Promise.reject(new KubeError(403, 'Forbidden', 'not you'));
    await assert.rejects(ensureSigner(SIGNER, testRotation(over(kube, { create }))), /not you/);
    assert.deepEqual(await secrets(kube), before);
  });

  test('a create that goes on failing ends the pass; the next one brings the Secret back', async () => {
    const { kube, uid } = await cluster();
    const create: Kube['create'] = (resource, object) =>
      object.metadata?.name === 'signer'
        ? Promise.reject(new KubeError(500, 'InternalError', 'etcd is away'))
        : kube.create(resource, object);
    const rotation = testRotation(over(kube, { create }));
    const failed = assert.rejects(ensureSigner(SIGNER, rotation), /etcd is away/);
    for (let round = 0; round < 10; round++) await rotation.clock.advance(10_000);
    await failed;
    await ensureSigner(SIGNER, testRotation(kube));
    await assertWhole(kube, uid);
  });

  test('who brings it back and finds that another process has done so leaves it to the next pass', async () => {
    const { kube } = await cluster();
    const stopped = new StoppedAfter(5);
    await Promise.race([ensureSigner(SIGNER, testRotation(stopped.over(kube))), stopped.happened]);
    const create = () => Promise.reject(new KubeError(409, 'AlreadyExists', 'exists'));
    const behind = testRotation(over(kube, { create }));
    assert.deepEqual(await ensureSigner(SIGNER, behind), { outcome: 'lost' });
    assert.deepEqual(await ensureTarget({ ...SIGNER, creator: TARGET.creator }, signer, signer.chain, behind), {
      outcome: 'lost',
    });
  });

  test('a copy that another process has written again meanwhile is not cleared', async () => {
    const { kube } = await cluster();
    const remove: Kube['delete'] = async (resource, key, options) => {
      if (key.name !== 'signer') return kube.delete(resource, key, options);
      await kube.update(SECRETS, { ...(await kube.get(SECRETS, ASIDE)), data: { secret: 'e30=' } });
      throw new KubeError(409, 'Conflict', 'the object has been modified');
    };
    assert.deepEqual(await ensureSigner(SIGNER, testRotation(over(kube, { delete: remove }))), { outcome: 'lost' });
    assert.deepEqual((await kube.get(SECRETS, ASIDE)).data, { secret: 'e30=' });
  });

  test('a copy that no longer belongs to anything is cleared, one that may be needed is not', async () => {
    const { kube } = await cluster();
    await ensureSigner(SIGNER, testRotation(kube));
    await kube.create(SECRETS, { metadata: ASIDE, type: SET_ASIDE_TYPE, data: { secret: 'e30=' } });
    const known = await kube.get(SECRETS, SIGNER);
    await kube.delete(SECRETS, SIGNER);
    const rotation = testRotation(kube);
    const read: typeof rotation.objects.read = async (_, { name }) =>
      (name === 'signer' ? known : await kube.get(SECRETS, ASIDE)) as never;
    await ensureSigner(SIGNER, { ...rotation, objects: { ...rotation.objects, read } });
    assert.ok(await kube.get(SECRETS, ASIDE), 'the Secret is gone, whatever the cache says');
    await kube.create(SECRETS, known);
    await ensureSigner(SIGNER, testRotation(kube));
    await assert.rejects(kube.get(SECRETS, ASIDE), { code: 404 });
  });

  const needed: [why: string, change: (secret: Secret) => Secret][] = [
    ['has the wrong type again', secret => ({ ...secret, type: 'Opaque' })],
    ['is being deleted', secret => ({ ...secret, metadata: { ...secret.metadata, deletionTimestamp: NOW_TEXT } })],
  ];
  for (const [why, change] of needed) {
    test(`the copy of a Secret that ${why} is not cleared: whoever is at it may need it`, async () => {
      const kube = new MemoryKube();
      const metadata = { ...ca.metadata, annotations: { ...ca.metadata?.annotations, [RECREATED]: '1' } };
      await kube.create(SECRETS, change({ ...ca, metadata }));
      await kube.create(SECRETS, { metadata: ASIDE, type: SET_ASIDE_TYPE, data: { secret: 'e30=' } });
      const update = () => Promise.reject(new KubeError(403, 'Forbidden', 'not you'));
      await ensureSigner(SIGNER, testRotation(over(kube, { update }))).catch(() => {});
      assert.deepEqual((await kube.get(SECRETS, ASIDE)).data, { secret: 'e30=' });
    });
  }

  test('a copy that cannot be read is an error that quotes nothing of it', async () => {
    const { kube } = await cluster();
    const data = { secret: Buffer.from('{"data": {"tls.key": "private"').toString('base64') };
    await kube.create(SECRETS, { metadata: ASIDE, type: SET_ASIDE_TYPE, data });
    await assert.rejects(bringBack({ namespace: 'ns', name: 'signer' }, testRotation(kube)), (error: Error) => {
      assert.match(error.message, /^Secret ns\/signer\.set-aside\.rotunda\.dev should hold another Secret as JSON/);
      assert.doesNotMatch(error.message, /private/);
      return true;
    });
  });
});

async function cluster(): Promise<{ kube: MemoryKube; uid: string }> {
  const kube = new MemoryKube();
  const { metadata } = await kube.create(SECRETS, WRONG);
  return { kube, uid: metadata?.uid ?? '' };
}

async function secrets(kube: Kube): Promise<readonly Secret[]> {
  return (await kube.list(SECRETS, { namespace: 'ns' })).items;
}

async function assertWhole(kube: Kube, uid: string, message = ''): Promise<void> {
  const [secret, ...others] = await secrets(kube);
  assert.deepEqual(others, [], `nothing stays behind ${message}`);
  const { labels, annotations, ownerReferences } = secret?.metadata ?? {};
  assert.deepEqual(
    { type: secret?.type, labels, annotations, ownerReferences, data: secret?.data },
    {
      type: 'kubernetes.io/tls',
      labels: WRONG.metadata?.labels,
      annotations: { ...WRONG.metadata?.annotations, [RECREATED]: uid },
      ownerReferences: [OWNER],
      data: WRONG.data,
    },
    message,
  );
}

/** A process that reaches the API so many times and is then stopped. */
class StoppedAfter {
  readonly happened: Promise<'stopped'>;
  #left: number;
  #stop!: (how: 'stopped') => void;

  constructor(calls: number) {
    this.#left = calls;
    this.happened = new Promise(resolve => (this.#stop = resolve));
  }

  over(kube: Kube): Kube {
    return new Proxy(kube, {
      get: (target, verb: 'get') => {
        const method = target[verb] as (...args: unknown[]) => Promise<unknown>;
        return (...args: unknown[]) => {
          if (this.#left-- > 0) return method.apply(target, args);
          this.#stop('stopped');
          return new Promise(() => {});
        };
      },
    });
  }
}

function over(kube: Kube, methods: Partial<Kube>): Kube {
  return new Proxy(kube, {
    get: (target, verb: 'get') => methods[verb] ?? (target[verb] as () => unknown).bind(target),
  });
}
