import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import { CONFIG_MAPS, EVENTS, LEASES, NODES, PODS, SECRETS } from '../../src/kube/resource.ts';
import { MANIFESTS } from '../../src/local/node.ts';
import { SERVER_CA_DIGEST } from '../../src/machine-config-api/names.ts';
import { eventually } from '../tools/eventually.ts';
import { freePort } from '../tools/free-ports.ts';
import {
  eventuallyLogged,
  eventuallyPod,
  fastClock,
  isAlive,
  isReady,
  NAMESPACE,
  nodePod,
  pidOf,
  startCluster,
  writeManifest,
} from './cluster.ts';

const FOREVER = 'setInterval(() => {}, 1000)';
const ENDS_WELL = `process.on('SIGTERM', () => process.exit(0)); console.log('started'); ${FOREVER}`;

test('a manifest becomes a process and a mirror pod; a changed one replaces it; none ends it', async t => {
  const { engine, root } = await startCluster(t);
  const manifest = nodePod('web', ENDS_WELL);
  manifest.metadata = { ...manifest.metadata, labels: { revision: '1' } };
  await writeManifest(root, 'web-pod.yaml', manifest);
  const first = await eventuallyPod(engine, 'web-master-0', 'ready', isReady);
  const annotations = first.metadata?.annotations ?? {};
  assert.equal(annotations['kubernetes.io/config.source'], 'file');
  assert.match(annotations['kubernetes.io/config.hash'] ?? '', /^[0-9a-f]{32}$/);
  assert.equal(annotations['kubernetes.io/config.mirror'], annotations['kubernetes.io/config.hash']);
  assert.ok(annotations['kubernetes.io/config.seen']);
  assert.equal(first.metadata?.ownerReferences?.[0]?.kind, 'Node');
  assert.equal(first.status?.phase, 'Running');
  assert.ok(isAlive(pidOf(first)));

  await engine.kube.delete(PODS, { namespace: NAMESPACE, name: 'web-master-0' }, { gracePeriodSeconds: 0 });
  const again = await eventuallyPod(
    engine,
    'web-master-0',
    'shown again',
    pod => isReady(pod) && pod.metadata?.uid !== first.metadata?.uid,
  );
  assert.equal(pidOf(again), pidOf(first), 'deleting the mirror does not touch the process');

  manifest.metadata = { ...manifest.metadata, labels: { revision: '2' } };
  await writeManifest(root, 'web-pod.yaml', manifest);
  const second = await eventuallyPod(
    engine,
    'web-master-0',
    'revision 2',
    pod => pod.metadata?.labels?.revision === '2' && isReady(pod),
  );
  assert.notEqual(pidOf(second), pidOf(first));
  assert.equal(isAlive(pidOf(first)), false, 'never two at a time');

  rmSync(join(root, MANIFESTS, 'web-pod.yaml'));
  await eventually('the process has ended', () => !isAlive(pidOf(second)));
  await eventually(
    'the mirror is gone',
    async () => (await engine.kube.list(PODS, { namespace: NAMESPACE })).items.length === 0,
  );
  await eventually('nothing is left on the disk', () => readdirSync(join(root, 'var/lib/kubelet/pods')).length === 0);
});

test('a mirror pod says what the manifest of the running process said, not that of the one which waits', async t => {
  const { engine, root } = await startCluster(t);
  const mayEnd = join(root, 'may-end');
  const listens = join(root, 'listens');
  const code = `process.on('SIGTERM', () => setInterval(() => require('fs').existsSync(${JSON.stringify(mayEnd)}) && process.exit(0), 10)); require('fs').writeFileSync(${JSON.stringify(listens)}, ''); ${FOREVER}`;
  const write = (digest: string) => {
    const manifest = nodePod('web', code, {}, { terminationGracePeriodSeconds: 600 });
    manifest.metadata = { ...manifest.metadata, annotations: { [SERVER_CA_DIGEST]: digest } };
    return writeManifest(root, 'web-pod.yaml', manifest);
  };
  const digestOf = ({ metadata }: Pod) => metadata?.annotations?.[SERVER_CA_DIGEST];
  await write('old');
  const first = await eventuallyPod(engine, 'web-master-0', 'ready', isReady);
  assert.equal(digestOf(first), 'old');
  await eventually('it has heard how it is to end', () => existsSync(listens));
  const seen: [digest: string | undefined, pid: number][] = [];
  const watching = new AbortController();
  const note = async () => {
    while (!watching.signal.aborted) {
      const pod = await getIfPresent(engine.kube, PODS, { namespace: NAMESPACE, name: 'web-master-0' });
      if (pod?.status?.containerStatuses?.[0]?.state?.running) seen.push([digestOf(pod), pidOf(pod)]);
      await setImmediate();
    }
  };
  const noted = note();
  t.after(() => watching.abort());
  await write('new');
  await eventuallyPod(engine, 'web-master-0', 'told to end', pod => !isReady(pod));
  assert.ok(isAlive(pidOf(first)));
  // The mirror is taken away and shown again while the old process lives on.
  await engine.kube.delete(PODS, { namespace: NAMESPACE, name: 'web-master-0' }, { gracePeriodSeconds: 0 });
  const again = await eventuallyPod(engine, 'web-master-0', 'shown again', pod => digestOf(pod) !== undefined);
  assert.equal(digestOf(again), 'old');
  writeFileSync(mayEnd, '');
  const second = await eventuallyPod(
    engine,
    'web-master-0',
    'replaced',
    pod => isReady(pod) && pidOf(pod) !== pidOf(first),
  );
  watching.abort();
  await noted;
  assert.equal(digestOf(second), 'new');
  for (const [digest, pid] of seen) assert.equal(digest, pid === pidOf(first) ? 'old' : 'new');
});

test('a manifest that cannot be read is reported, and the last good one goes on', async t => {
  const { engine, root } = await startCluster(t);
  await writeManifest(root, 'web-pod.yaml', nodePod('web', ENDS_WELL));
  const first = await eventuallyPod(engine, 'web-master-0', 'ready', isReady);
  await writeManifest(root, 'web-pod.yaml', 'a: [1');
  await eventually('an event on the node', async () => {
    const { items } = await engine.kube.list(EVENTS, { namespace: 'default' });
    return items.find(
      ({ reason, message }) => reason === 'InvalidManifest' && message?.includes('web-pod.yaml is not YAML'),
    );
  });
  assert.ok(isAlive(pidOf(first)));
  const fixed = nodePod('web', ENDS_WELL);
  fixed.metadata = { ...fixed.metadata, labels: { fixed: 'yes' } };
  await writeManifest(root, 'web-pod.yaml', fixed);
  await eventuallyPod(engine, 'web-master-0', 'fixed', pod => pod.metadata?.labels?.fixed === 'yes' && isReady(pod));
});

test('a container that fails is started again with growing pauses', async t => {
  const { engine, root } = await startCluster(t, { clock: fastClock(100) });
  await writeManifest(
    root,
    'bad-pod.yaml',
    nodePod('bad', `console.log('no good'); process.exit(3)`, { terminationMessagePolicy: 'FallbackToLogsOnError' }),
  );
  const pod = await eventuallyPod(engine, 'bad-master-0', 'crash loop', ({ status }) => {
    const [container] = status?.containerStatuses ?? [];
    return container?.state?.waiting?.reason === 'CrashLoopBackOff' && (container.restartCount ?? 0) >= 2;
  });
  const [container] = pod.status?.containerStatuses ?? [];
  assert.match(
    container?.state?.waiting?.message ?? '',
    /^back-off (?:\d+m)?\d+s restarting failed container=main pod=bad-master-0_test\(/,
  );
  assert.equal(container?.lastState?.terminated?.exitCode, 3);
  assert.equal(container?.lastState?.terminated?.reason, 'Error');
  assert.equal(container?.lastState?.terminated?.message, 'no good\n');
  assert.equal(isReady(pod), false);
});

test('probes: ready only when they say so, killed and restarted when they fail', async t => {
  const { engine, root } = await startCluster(t, { clock: fastClock(20) });
  // Healthy for as long as a file is there; ready when another one is.
  const code = `
    const { existsSync } = require('node:fs');
    require('node:http').createServer((request, response) => {
      response.writeHead(existsSync('/data' + request.url) ? 200 : 500).end();
    }).listen(Number(process.env.PORT), '127.0.0.1');`;
  const port = await freePort();
  const probe = (path: string) => ({ httpGet: { port, path }, periodSeconds: 1, failureThreshold: 2 });
  const pod = nodePod('web', code, {
    env: [{ name: 'PORT', value: String(port) }],
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
    startupProbe: { ...probe('/live'), failureThreshold: 1000 },
    livenessProbe: probe('/live'),
    readinessProbe: probe('/ready'),
  });
  pod.spec = {
    ...pod.spec,
    containers: pod.spec?.containers ?? [],
    volumes: [{ name: 'data', hostPath: { path: '/data' } }],
  };
  await writeManifest(root, 'web-pod.yaml', pod);
  const status = (is: (status: { started?: boolean; ready: boolean; restartCount: number }) => boolean, what: string) =>
    eventuallyPod(engine, 'web-master-0', what, ({ status }) => {
      const [container] = status?.containerStatuses ?? [];
      return container !== undefined && is(container);
    });
  const touch = (name: string) => writeManifest(root, `../../../data/${name}`, 'x');
  await status(({ started, ready }) => started === false && !ready, 'not started');
  await touch('live');
  await status(({ started, ready }) => started === true && !ready, 'started, not ready');
  await touch('ready');
  const ready = await status(container => container.ready, 'ready');
  rmSync(join(root, 'data/ready'));
  await status(container => !container.ready && container.restartCount === 0, 'not ready any more, and not restarted');
  rmSync(join(root, 'data/live'));
  await status(({ restartCount }) => restartCount > 0, 'restarted');
  assert.equal(isAlive(pidOf(ready)), false);
  const { items } = await engine.kube.list(EVENTS, { namespace: NAMESPACE });
  assert.ok(
    items.some(({ reason, message }) => reason === 'Unhealthy' && message?.startsWith('Liveness probe failed')),
  );
  assert.ok(items.some(({ reason }) => reason === 'Killing'));
});

test('a pod bound by the API runs with its volumes and environment, and ends as it should', async t => {
  const { engine, root } = await startCluster(t);
  const { kube } = engine;
  await kube.create(SECRETS, {
    metadata: { namespace: NAMESPACE, name: 's' },
    data: { key: Buffer.from('from a secret').toString('base64') },
  });
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: NAMESPACE, name: 'c' },
    data: { a: 'from a config map', b: 'not wanted' },
  });
  const show = `
    const { readFileSync, readdirSync, writeFileSync } = require('node:fs');
    writeFileSync('/host/out', JSON.stringify({
      env: [process.env.POD_NAME, process.env.POD_NAMESPACE, process.env.NODE_NAME, process.env.POD_IP, process.env.BOTH],
      secret: readFileSync('/secret/key', 'utf8'), config: readdirSync('/config').concat(readFileSync('/config/renamed', 'utf8')),
      init: readFileSync('/scratch/init', 'utf8'), args: process.argv.slice(1) }));
    console.error('done');`;
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const pod = nodePod('job', show, {
    args: ['--', '--config=/config', '$(POD_NAME)', '/not/config'],
    env: [
      field('POD_NAME', 'metadata.name'),
      field('POD_NAMESPACE', 'metadata.namespace'),
      field('NODE_NAME', 'spec.nodeName'),
      field('POD_IP', 'status.podIP'),
      { name: 'BOTH', value: '$(POD_NAME) on $(NODE_NAME), $$(not) $(UNKNOWN)' },
    ],
    volumeMounts: [
      { name: 'host', mountPath: '/host' },
      { name: 'secret', mountPath: '/secret' },
      { name: 'config', mountPath: '/config' },
      { name: 'scratch', mountPath: '/scratch' },
    ],
  });
  pod.spec = {
    ...pod.spec,
    containers: pod.spec?.containers ?? [],
    nodeName: 'master-0',
    restartPolicy: 'Never',
    initContainers: [
      {
        name: 'first',
        image: 'sh',
        command: ['/bin/sh', '-c', 'printf one > /scratch/init'],
        volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
      },
      {
        name: 'second',
        image: 'sh',
        command: ['/bin/sh', '-c', 'printf " two" >> /scratch/init'],
        volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
      },
    ],
    volumes: [
      { name: 'host', hostPath: { path: '/var/host' } },
      { name: 'secret', secret: { secretName: 's', defaultMode: 0o600 } },
      { name: 'config', configMap: { name: 'c', items: [{ key: 'a', path: 'renamed' }] } },
      { name: 'scratch', emptyDir: {} },
    ],
  };
  await kube.create(PODS, pod);
  const ended = await eventuallyPod(
    engine,
    'job',
    'ended',
    ({ status }) => status?.phase === 'Succeeded' || status?.phase === 'Failed',
  );
  assert.equal(ended.status?.phase, 'Succeeded');
  const configDir = join(root, 'var/lib/kubelet/pods', ended.metadata?.uid ?? '', 'volumes/configmap/config');
  assert.deepEqual(JSON.parse(readFileSync(join(root, 'var/host/out'), 'utf8')), {
    env: ['job', NAMESPACE, 'master-0', '127.0.0.1', 'job on master-0, $(not) $(UNKNOWN)'],
    secret: 'from a secret',
    config: ['renamed', 'from a config map'],
    init: 'one two',
    args: [`--config=${configDir}`, 'job', '/not/config'],
  });
  assert.deepEqual(
    ended.status?.initContainerStatuses?.map(({ state }) => state?.terminated?.exitCode),
    [0, 0],
  );
  assert.equal(ended.status?.containerStatuses?.[0]?.state?.terminated?.reason, 'Completed');
  await kube.delete(PODS, { namespace: NAMESPACE, name: 'job' });
  await eventually('nothing is left on the disk', () => readdirSync(join(root, 'var/lib/kubelet/pods')).length === 0);
});

test('a pod that is deleted is asked to end, then made to, and only then gone', async t => {
  const { engine, node } = await startCluster(t);
  const bound = (name: string, code: string) =>
    nodePod(name, code, {}, { nodeName: 'master-0', terminationGracePeriodSeconds: 1 });
  const child = `require('node:child_process').spawn(process.execPath, ['-e', '${FOREVER}'])`;
  await engine.kube.create(PODS, bound('kind', ENDS_WELL));
  await engine.kube.create(
    PODS,
    bound('stubborn', `process.on('SIGTERM', () => {}); ${child}; console.log('started'); ${FOREVER}`),
  );
  for (const name of ['kind', 'stubborn']) {
    await eventuallyLogged(node, name, 'started');
    const pod = await eventuallyPod(engine, name, 'ready', isReady);
    const asked = Date.now();
    await engine.kube.delete(PODS, { namespace: NAMESPACE, name });
    assert.ok(
      (await engine.kube.get(PODS, { namespace: NAMESPACE, name })).metadata?.deletionTimestamp,
      'the node decides when it is gone',
    );
    await eventually(
      'gone',
      async () =>
        !(await engine.kube.list(PODS, { namespace: NAMESPACE })).items.some(({ metadata }) => metadata?.name === name),
    );
    assert.equal(isAlive(pidOf(pod)), false);
    if (name === 'stubborn') assert.ok(Date.now() - asked >= 1000, 'it had its time');
    const children = readdirSync('/proc').filter(
      pid => /^\d+$/.test(pid) && environOf(pid).includes(`${pod.metadata?.uid}/`),
    );
    assert.deepEqual(children, [], 'what it started has ended with it');
  }
});

function environOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}

test('a missing volume keeps the pod waiting with the reason, and it starts when the volume is there', async t => {
  const { engine } = await startCluster(t, { clock: fastClock(20) });
  const pod = nodePod(
    'late',
    ENDS_WELL,
    { volumeMounts: [{ name: 's', mountPath: '/s' }] },
    {
      nodeName: 'master-0',
      volumes: [{ name: 's', secret: { secretName: 'later' } }],
    },
  );
  await engine.kube.create(PODS, pod);
  await eventuallyPod(engine, 'late', 'waiting', ({ status }) => status?.message === 'secret "later" not found');
  await engine.kube.create(SECRETS, { metadata: { namespace: NAMESPACE, name: 'later' } });
  const ready = await eventuallyPod(engine, 'late', 'ready', isReady);
  assert.equal(ready.status?.message, undefined);
});

test('a program that is not there is a failure of the container, said in words', async t => {
  const { engine } = await startCluster(t);
  const spec = { nodeName: 'master-0', restartPolicy: 'Never' };
  await engine.kube.create(PODS, nodePod('none', '', { command: ['/no/such/program'] }, spec));
  const failed = await eventuallyPod(engine, 'none', 'failed', ({ status }) => status?.phase === 'Failed');
  const state = failed.status?.containerStatuses?.[0]?.state?.terminated;
  assert.equal(state?.reason, 'StartError');
  assert.match(state?.message ?? '', /no such file|ENOENT/);
  const image = nodePod('image', '', {}, spec);
  image.spec = { ...image.spec, containers: [{ name: 'main', image: 'quay.io/some/thing:1' }] };
  await engine.kube.create(PODS, image);
  const without = await eventuallyPod(engine, 'image', 'failed', ({ status }) => status?.phase === 'Failed');
  assert.match(
    without.status?.containerStatuses?.[0]?.state?.terminated?.message ?? '',
    /no program for the image "quay.io\/some\/thing:1"/,
  );
});

test('the node says that it is there, and that it stops', async t => {
  const { engine, node, root } = await startCluster(t, { labels: { 'node-role.kubernetes.io/master': '' } });
  await node.registered;
  const object = await eventually('ready', async () => {
    const found = await engine.kube.get(NODES, { name: 'master-0' });
    return found.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
      ? found
      : undefined;
  });
  assert.equal(object.metadata?.labels?.['node-role.kubernetes.io/master'], '');
  assert.equal(object.metadata?.annotations?.['rotunda.dev/stand-in'], 'true');
  assert.match(object.status?.nodeInfo?.kubeletVersion ?? '', /^v1\.29\.0\+rotunda/);
  const lease = await engine.kube.get(LEASES, { namespace: 'kube-node-lease', name: 'master-0' });
  assert.equal(lease.spec?.holderIdentity, 'master-0');
  await writeManifest(root, 'web-pod.yaml', nodePod('web', ENDS_WELL));
  const pod = await eventuallyPod(engine, 'web-master-0', 'ready', isReady);
  await node.stop();
  assert.equal(isAlive(pidOf(pod)), false);
  const stopped = await engine.kube.get(NODES, { name: 'master-0' });
  assert.equal(stopped.status?.conditions?.find(({ type }) => type === 'Ready')?.status, 'False');
  assert.equal(isReady(await engine.kube.get(PODS, { namespace: NAMESPACE, name: 'web-master-0' })), false);
  assert.ok(existsSync(join(root, MANIFESTS, 'web-pod.yaml')));
});
