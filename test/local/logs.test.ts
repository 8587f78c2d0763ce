import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { startApi } from '../../src/api/api.ts';
import { NAMESPACES } from '../../src/kube/resource.ts';
import { LocalNode } from '../../src/local/node.ts';
import { localPodLogs } from '../../src/local/pod-logs.ts';
import { ended } from '../tools/child.ts';
import { eventually, inTime } from '../tools/eventually.ts';
import {
  atEnd,
  eventuallyPod,
  fastClock,
  isReady,
  NAMESPACE,
  nodePod,
  temporaryDirectory,
  writeManifest,
} from './cluster.ts';

const run = promisify(execFile);
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

test('kubectl logs: all, tail, since, previous, follow, and clear refusals', {
  skip: hasKubectl ? false : 'kubectl is not installed',
}, async t => {
  const directory = temporaryDirectory(t);
  const nodes: LocalNode[] = [];
  const api = await startApi({ dir: join(directory, 'api'), podLogs: localPodLogs(() => nodes) });
  // Ten times as fast: pauses between restarts are short.
  const node = new LocalNode({ name: 'master-0', root: join(directory, 'node'), kube: api.kube, clock: fastClock(10) });
  nodes.push(node);
  atEnd(t, async () => {
    await node.stop();
    await api.close();
  });
  await api.kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  await node.start();
  const kubeconfig = [`--kubeconfig=${api.kubeconfigPath}`, `--namespace=${NAMESPACE}`];
  const logs = async (...args: string[]) => (await run('kubectl', [...kubeconfig, 'logs', ...args])).stdout;
  const refused = async (...args: string[]) => {
    const error = (await logs(...args).then(
      () => undefined,
      (failure: unknown) => failure,
    )) as { stderr?: string } | undefined;
    return error?.stderr ?? '';
  };

  // Says which run it is; the first one ends, the second one stays and says something each time it is told to.
  const code = `
    const { existsSync, writeFileSync } = require('node:fs');
    if (!existsSync('/data/ran')) { writeFileSync('/data/ran', ''); console.log('first run'); process.exit(1); }
    console.log('one'); console.error('two'); console.log('three');
    process.on('SIGUSR2', () => console.log('more'));
    process.on('SIGTERM', () => { console.log('bye'); process.exit(0); });
    setInterval(() => {}, 1000);`;
  const mount = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };
  const volumes = [{ name: 'data', emptyDir: {} }];
  await writeManifest(node.root, 'web-pod.yaml', nodePod('web', code, mount, { volumes }));
  await eventuallyPod(
    api.engine,
    'web-master-0',
    'second run',
    pod => isReady(pod) && pod.status?.containerStatuses?.[0]?.restartCount === 1,
  );
  const whole = await eventually('all three lines', async () => {
    const text = await logs('web-master-0');
    return text.split('\n').length === 4 ? text : undefined;
  });
  assert.deepEqual(whole.split('\n').slice(0, 3).toSorted(), ['one', 'three', 'two']);
  assert.equal(await logs('web-master-0', '--tail=1'), whole.split('\n').slice(-2).join('\n'));
  assert.equal(await logs('web-master-0', '-c', 'main', '--since=1h'), whole);
  assert.equal(await logs('web-master-0', '--previous'), 'first run\n');
  assert.match(await logs('web-master-0', '--timestamps', '--tail=1'), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z \w+\n$/);

  const follower = spawn('kubectl', [...kubeconfig, 'logs', '-f', 'web-master-0', '--tail=0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let followed = '';
  follower.stdout.on('data', (chunk: Buffer) => {
    followed += chunk.toString();
  });
  const pid = Number(
    /\/\/(\d+)-/.exec(node.runner(NAMESPACE, 'web-master-0')?.container('main')?.snapshot().id ?? '')?.[1],
  );
  await eventually('the follower gets what is new', () => {
    process.kill(pid, 'SIGUSR2');
    return followed.includes('more\n');
  });
  const closed = once(follower, 'close');
  await writeManifest(node.root, 'web-pod.yaml', nodePod('web', code, mount, { volumes, hostname: 'changed' }));
  await inTime('the end of kubectl logs -f', closed);
  assert.match(followed, /bye\n$/, 'to the last word');

  await eventuallyPod(
    api.engine,
    'web-master-0',
    'the new pod',
    pod => isReady(pod) && pod.spec?.hostname === 'changed',
  );
  assert.match(await refused('web-master-0', '-c', 'none'), /container none is not valid for pod web-master-0/);
  await writeManifest(
    node.root,
    'late-pod.yaml',
    nodePod(
      'late',
      '',
      { volumeMounts: [{ name: 's', mountPath: '/s' }] },
      { volumes: [{ name: 's', secret: { secretName: 'none' } }] },
    ),
  );
  await eventuallyPod(api.engine, 'late-master-0', 'waiting', pod => pod.status?.reason === 'FailedMount');
  assert.match(
    await refused('late-master-0'),
    /container "main" in pod "late-master-0" is waiting to start: ContainerCreating/,
  );
  assert.match(
    await refused('late-master-0', '--previous'),
    /previous terminated container "main" in pod "late-master-0" not found/,
  );
});

test('a program whose node never comes back ends by itself, and ends the others of its pod', async t => {
  const guard = fileURLToPath(new URL('../../src/local/orphan-guard.ts', import.meta.url));
  const env = {
    ...process.env,
    ROTUNDA_SUPERVISOR: join(temporaryDirectory(t), 'none.json'),
    ROTUNDA_ORPHAN_MS: '100',
  };
  const code = `process.on('SIGTERM', () => process.exit(7)); setInterval(() => {}, 1000)`;
  // One that is not ours, such as a real etcd, has nobody else to end it.
  const pod = `${temporaryDirectory(t)}//uid`;
  const other = spawn('sleep', ['600'], { env: { ...env, ROTUNDA_CONTAINER: `${pod}/other` }, stdio: 'ignore' });
  t.after(() => other.kill('SIGKILL'));
  const child = spawn(process.execPath, ['--import', pathToFileURL(guard).href, '-e', code], {
    env: { ...env, ROTUNDA_CONTAINER: `${pod}/own` },
    stdio: 'ignore',
  });
  t.after(() => child.kill('SIGKILL'));
  assert.deepEqual(await ended(child), { code: 7, signal: null });
  assert.deepEqual(await ended(other), { code: null, signal: 'SIGTERM' });
});
