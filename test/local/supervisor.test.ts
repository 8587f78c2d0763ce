import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Api, startApi } from '../../src/api/api.ts';
import { NAMESPACES, PODS } from '../../src/kube/resource.ts';
import { MANIFESTS } from '../../src/local/node.ts';
import { end, firstLine } from '../tools/child.ts';
import { eventually, inTime } from '../tools/eventually.ts';
import {
  atEnd,
  eventuallyPod,
  isReady,
  NAMESPACE,
  nodePod,
  pidOf,
  temporaryDirectory,
  writeManifest,
} from './cluster.ts';

const PROGRAM = fileURLToPath(new URL('supervisor.ts', import.meta.url));
const SERVES = `process.on('SIGTERM', () => process.exit(0)); console.log('up'); setInterval(() => {}, 1000)`;

async function setup(t: TestContext) {
  const directory = temporaryDirectory(t);
  const root = join(directory, 'nodes/master-0');
  const api = await startApi({ dir: join(directory, 'api') });
  await api.kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  const supervisors: ChildProcess[] = [];
  atEnd(t, async () => {
    const running = supervisors.filter(child => child.exitCode === null && child.signalCode === null);
    await Promise.all(running.map(killed));
    for (const pid of processesBelow(root)) process.kill(pid, 'SIGKILL');
    await api.close();
  });
  const start = async () => {
    const child = spawn(process.execPath, [PROGRAM, root, api.kubeconfigPath ?? ''], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    supervisors.push(child);
    return child;
  };
  return { api, root, start };
}

const started = firstLine;
const killed = (child: ChildProcess) => end(child, 'SIGKILL');

/** All processes that a node with this root has started, whoever is their parent now. */
function processesBelow(root: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(name => {
      try {
        return readFileSync(`/proc/${name}/environ`, 'latin1').includes(`ROTUNDA_CONTAINER=${root}//`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

const shown = (api: Api, what: string, revision: string) =>
  eventuallyPod(api.engine, 'web-master-0', what, pod => pod.metadata?.labels?.revision === revision && isReady(pod));

function manifest(revision: number) {
  const pod = nodePod('web', SERVES);
  pod.metadata = { ...pod.metadata, labels: { revision: String(revision) } };
  return pod;
}

test('a node that is killed finds its processes again', async t => {
  const { api, root, start } = await setup(t);
  await writeManifest(root, 'web-pod.yaml', manifest(1));
  await api.kube.create(PODS, nodePod('bound', SERVES, {}, { nodeName: 'master-0' }));
  const first = await start();
  const web = await shown(api, 'ready', '1');
  const bound = await eventuallyPod(api.engine, 'bound', 'ready', isReady);
  await killed(first);
  assert.deepEqual(new Set(processesBelow(root)), new Set([pidOf(web), pidOf(bound)]), 'they outlive the node');

  const second = await start();
  await started(second);
  await shown(api, 'ready', '1');
  await eventually(
    'the informer is there',
    async () => (await eventuallyPod(api.engine, 'bound', 'ready', isReady)) !== undefined,
  );
  assert.deepEqual(new Set(processesBelow(root)), new Set([pidOf(web), pidOf(bound)]), 'the same two, and no others');

  // A process that ends under a node that did not start it is noticed and replaced.
  process.kill(pidOf(web), 'SIGKILL');
  const replaced = await eventuallyPod(
    api.engine,
    'web-master-0',
    'restarted',
    pod => isReady(pod) && pidOf(pod) !== pidOf(web),
  );
  assert.equal(replaced.status?.containerStatuses?.[0]?.restartCount, 1);
  assert.equal(replaced.status?.containerStatuses?.[0]?.lastState?.terminated?.reason, 'ContainerStatusUnknown');

  // What changed while no node was there takes the place of what was.
  await killed(second);
  await writeManifest(root, 'web-pod.yaml', manifest(2));
  await api.kube.delete(PODS, { namespace: NAMESPACE, name: 'bound' }, { gracePeriodSeconds: 0 });
  const third = await start();
  const newer = await shown(api, 'revision 2', '2');
  await eventually('exactly one process', () => {
    const found = processesBelow(root);
    return found.length === 1 && found[0] === pidOf(newer);
  });
  await end(third);
  assert.deepEqual(processesBelow(root), [], 'a node that stops leaves nothing running');
});

test('a program of ours that ends while its node is away leaves word of how', async t => {
  const { api, root, start } = await setup(t);
  const guard = new URL('../../src/local/orphan-guard.ts', import.meta.url).href;
  const ends = `process.on('SIGUSR2', () => process.exit(0)); setInterval(() => {}, 1000)`;
  const command = [process.execPath, '--import', guard, '-e', ends];
  await api.kube.create(PODS, nodePod('once', '', { command }, { nodeName: 'master-0', restartPolicy: 'OnFailure' }));
  const first = await start();
  const pod = await eventuallyPod(api.engine, 'once', 'ready', isReady);
  await eventually('its own code to run', () => {
    // Until then the signal would end it.
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pidOf(pod)}/status`, 'latin1'))?.[1] ?? '0';
    return (BigInt(`0x${caught}`) & (1n << 11n)) !== 0n;
  });
  await killed(first);
  process.kill(pidOf(pod), 'SIGUSR2');
  await eventually('it to end', () => processesBelow(root).length === 0);
  await start();
  const over = await eventuallyPod(api.engine, 'once', 'over', ({ status }) => status?.phase === 'Succeeded');
  const { restartCount, state } = over.status?.containerStatuses?.[0] ?? {};
  assert.deepEqual([restartCount, state?.terminated?.exitCode, state?.terminated?.reason], [0, 0, 'Completed']);
});

test('killed at any moment of a roll-out, the node comes to the newest revision and one process', async t => {
  const { api, root, start } = await setup(t);
  let revision = 0;
  for (let round = 0; round < 12; round++) {
    const child = await start();
    await writeManifest(root, 'web-pod.yaml', manifest(++revision));
    if (round % 3 !== 0) await started(child);
    // Somewhere between reading the manifest, ending the old process, starting the new one and showing it.
    const until = Date.now() + Math.random() * 150;
    await eventually('a moment', () => Date.now() >= until);
    await killed(child);
    const text = readFileSync(join(root, MANIFESTS, 'web-pod.yaml'), 'utf8');
    assert.equal(JSON.parse(text).metadata.labels.revision, String(revision), 'the manifest is whole');
  }
  await start();
  const pod = await shown(api, 'newest revision', String(revision));
  await eventually('exactly one process', () => {
    const found = processesBelow(root);
    return found.length === 1 && found[0] === pidOf(pod);
  });
  assert.ok(existsSync(join(root, 'run/rotunda/node.lock')));
});

test('two nodes cannot run the same root', async t => {
  const { root, start } = await setup(t);
  await writeManifest(root, 'web-pod.yaml', manifest(1));
  const first = await start();
  await started(first);
  const second = spawn(process.execPath, [PROGRAM, root, join(root, '../../api/kubeconfig')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  second.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const [code] = (await inTime('the end of the second', once(second, 'close'))) as [number];
  assert.notEqual(code, 0);
  assert.match(text, /another process runs the node at/);
});
