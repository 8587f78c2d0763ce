import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { after, before, describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import type { Engine } from '../../src/api/engine.ts';
import { VirtualClock } from '../../src/kube/clock.ts';
import { KubeError } from '../../src/kube/error.ts';
import { CONFIG_MAPS, type KubeObject, PODS, type Resource } from '../../src/kube/resource.ts';

/**
 * Requests with very many small parts: what they cost must not grow faster than they do. In a process of its own: only code that is
 * compiled after the counting began is counted block by block, and it must not be thrown away and compiled anew in between.
 */
describe('the work for one request', () => {
  let engine: Engine;
  const session = new Session();
  before(async () => {
    setFlagsFromString('--no-flush-bytecode');
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    const { startEngine } = await import('../../src/api/engine.ts');
    engine = await startEngine({ clock: new VirtualClock('2026-01-01T00:00:00Z') });
  });
  after(async () => {
    session.disconnect();
    await engine.close();
  });

  /** How often pieces of our code were run: the same on every machine, however busy. */
  async function stepsOf(work: () => Promise<unknown>): Promise<number> {
    await session.post('Profiler.takePreciseCoverage');
    await work();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const ours = result.filter(({ url }) => url.includes('/src/'));
    return ours
      .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
      .reduce((sum, { count }) => sum + count, 0);
  }

  const numbered = <T>(length: number, make: (index: number) => T): T[] =>
    Array.from({ length }, (_, index) => make(index));
  const named = (size: number, name: string) => Object.fromEntries(numbered(size, index => [`${name}${index}`, 'v']));
  const owner = { apiVersion: 'example.com/v1', kind: 'Elsewhere' };
  const configMap = (body: (size: number) => KubeObject) => ({
    resource: CONFIG_MAPS as Resource,
    kind: 'ConfigMap',
    body,
  });
  const pod = (container: (size: number) => object) => ({
    resource: PODS as Resource,
    kind: 'Pod',
    body: (size: number) => ({ spec: { containers: [{ name: 'c', image: 'i', ...container(size) }] } }) as KubeObject,
  });
  const parts: Record<string, { resource: Resource; kind: string; body: (size: number) => KubeObject }> = {
    'owner references': configMap(size => ({
      metadata: { ownerReferences: numbered(size, index => ({ ...owner, name: `o${index}`, uid: `uid-${index}` })) },
    })),
    labels: configMap(size => ({ metadata: { labels: named(size, 'l') } })),
    'labels that are wrong': configMap(size => ({ metadata: { labels: named(size, '!') } })),
    annotations: configMap(size => ({ metadata: { annotations: named(size, 'a') } })),
    finalizers: configMap(size => ({ metadata: { finalizers: numbered(size, index => `example.com/f${index}`) } })),
    keys: configMap(size => ({ data: named(size, 'k') }) as KubeObject),
    variables: pod(size => ({ env: numbered(size, index => ({ name: `E${index}`, value: 'v' })) })),
    ports: pod(size => ({ ports: numbered(size, index => ({ name: `p${index}`, containerPort: index + 1 })) })),
  };

  for (const [what, { resource, kind, body }] of Object.entries(parts)) {
    const key = (name: string) => ({ name: `${what.replaceAll(' ', '-')}-${name}`, namespace: 'default' });
    const object = (name: string, size: number): KubeObject => {
      const rest = body(size);
      return { ...rest, metadata: { ...rest.metadata, ...key(name) } };
    };
    const patch = (type: 'merge' | 'strategic') => (size: number) =>
      engine.kube.patch(resource, key(type), { type, body: body(size) });
    const verbs: Record<string, (size: number) => Promise<unknown>> = {
      create: size => engine.kube.create(resource, object(`create-${size}`, size)),
      update: size => engine.kube.update(resource, object('update', size)),
      merge: patch('merge'),
      strategic: patch('strategic'),
      apply: size =>
        engine.kube.patch(
          resource,
          key('apply'),
          { type: 'apply', body: { apiVersion: 'v1', kind, ...object('apply', size) } },
          { fieldManager: 'test', force: true },
        ),
    };
    const refused = (error: unknown) => assert.ok(error instanceof KubeError && error.code === 422, String(error));

    it(`grows no faster than the number of ${what}`, async () => {
      for (const name of ['update', 'merge', 'strategic', 'apply']) {
        await engine.kube.create(resource, { ...body(0), metadata: key(name) });
      }
      for (const [verb, call] of Object.entries(verbs)) {
        await call(2).catch(refused);
        const few = await stepsOf(() => call(500).catch(refused));
        const many = await stepsOf(() => call(2000).catch(refused));
        assert.ok(many < 5 * few, `${verb}: ${few} steps for 500, ${many} for 2000`);
      }
    });
  }
});
