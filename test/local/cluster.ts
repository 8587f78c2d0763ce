import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Container, Pod } from 'kubernetes-types/core/v1.d.ts';
import { type Engine, startEngine } from '../../src/api/engine.ts';
import { type Clock, systemClock } from '../../src/kube/clock.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import { NAMESPACES, PODS } from '../../src/kube/resource.ts';
import { LocalNode, type LocalNodeOptions, MANIFESTS } from '../../src/local/node.ts';
import { writeFileAtomically } from '../../src/staticpod/node/atomic-write.ts';
import { systemFiles } from '../../src/staticpod/node/files.ts';
import { eventually } from '../tools/eventually.ts';

export const NAMESPACE = 'test';

/** A clock on which everything takes a part of the time. */
export function fastClock(factor: number): Clock {
  const start = Date.now();
  return {
    now: () => new Date(start + (Date.now() - start) * factor),
    until: (at, signal) => systemClock.until(new Date(start + (at.getTime() - start) / factor), signal),
    pause: (milliseconds, signal) => systemClock.pause?.(milliseconds / factor, signal) ?? Promise.resolve(),
  };
}

const endings = new WeakMap<TestContext, (() => unknown)[]>();

/** Does something when the test is over; what was asked for last comes first. */
export function atEnd(t: TestContext, work: () => unknown): void {
  const known = endings.get(t);
  if (known !== undefined) {
    known.push(work);
    return;
  }
  const all = [work];
  endings.set(t, all);
  t.after(async () => {
    for (const one of all.toReversed()) await one();
  });
}

/** A directory that goes away with the test. */
export function temporaryDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'rotunda-local-'));
  atEnd(t, () => rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }));
  return directory;
}

/** An API in this process and one node, both of which end with the test. */
export async function startCluster(
  t: TestContext,
  options: Partial<LocalNodeOptions> = {},
): Promise<{ engine: Engine; node: LocalNode; root: string }> {
  const root = options.root ?? join(temporaryDirectory(t), 'nodes', 'master-0');
  const engine = await startEngine();
  const node = new LocalNode({ name: 'master-0', root, kube: engine.kube, ...options });
  atEnd(t, async () => {
    await node.stop();
    await engine.close();
  });
  await engine.kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  await node.start();
  return { engine, node, root };
}

/** A pod whose containers run Node on a piece of code. */
export function nodePod(
  name: string,
  code: string,
  changes: Partial<Container> = {},
  spec: Partial<Pod['spec']> = {},
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      containers: [{ name: 'main', image: 'node', command: [process.execPath, '-e', code], ...changes }],
      terminationGracePeriodSeconds: 5,
      ...spec,
    },
  };
}

/** Puts a manifest where the node looks for it. */
export async function writeManifest(root: string, file: string, content: Pod | string): Promise<void> {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  const files = systemFiles();
  await files.makeDirectory(join(root, MANIFESTS));
  await writeFileAtomically(files, join(root, MANIFESTS, file), Buffer.from(text), 0o600);
}

/** Waits until the pod in the API is as wanted. */
export function eventuallyPod(engine: Engine, name: string, what: string, is: (pod: Pod) => boolean): Promise<Pod> {
  let last: Pod | undefined;
  return eventually(`pod ${name}: ${what}`, async () => {
    last = await getIfPresent(engine.kube, PODS, { namespace: NAMESPACE, name });
    return last !== undefined && is(last) ? last : undefined;
  }).catch((error: unknown) => {
    throw new Error(`${(error as Error).message}; last seen ${JSON.stringify(last?.status, null, 1)}`);
  });
}

/** Waits until a container has written something. */
export function eventuallyLogged(node: LocalNode, pod: string, text: string): Promise<true> {
  return eventually(`${pod} says ${text}`, () => {
    const path = node.runner(NAMESPACE, pod)?.container('main')?.logPath();
    return path !== undefined && existsSync(path) && readFileSync(path, 'utf8').includes(text) ? true : undefined;
  });
}

export const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;

/** The process of a pod's only container, from its status. */
export function pidOf(pod: Pod): number {
  return Number(/^rotunda:\/\/(\d+)-/.exec(pod.status?.containerStatuses?.[0]?.containerID ?? '')?.[1]);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
