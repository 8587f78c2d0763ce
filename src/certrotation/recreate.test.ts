import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { ConnectionError, KubeError } from '../kube/error.ts';
import { MemoryKube } from '../kube/memory.ts';
import type { Kube } from '../kube/port.ts';
import { SECRETS } from '../kube/resource.ts';
import { MANAGED_CERTIFICATE_TYPE } from './annotations.ts';
import { bringBack, RECREATED, SET_ASIDE_TYPE } from './recreate.ts';
import { ensureSigner } from './signer.ts';
import { SIGNER, secretOf, testCA, testRotation } from './testing.ts';

const ASIDE = { namespace: 'ns', name: 'signer.set-aside.rotunda.dev' };
const OWNER = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: '7' };
const ca = secretOf(await testCA('ns_signer@1'));
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

  test('the answer to the delete is lost: the copy stays, since it may be all there is', async () => {
    const { kube, uid } = await cluster();
    const remove: Kube['delete'] = async (...call) => {
      await kube.delete(...call);
      throw new ConnectionError('ECONNRESET', 'the connection broke');
    };
    await assert.rejects(ensureSigner(SIGNER, testRotation(over(kube, { delete: remove }))), /the connection broke/);
    await ensureSigner(SIGNER, testRotation(kube));
    await assertWhole(kube, uid);
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
