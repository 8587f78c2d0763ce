/**
 * Both sides of a rotation of the server CA (spec 50, CC-6 to CC-8; spec 60, 4.7 to 4.11): the real operator asks, certificate
 * writers take the bundle over, and the flag stays up until the last node has, also one that was away.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startEngine } from '../../../src/api/api.ts';
import { silentLog } from '../../../src/controller/log.ts';
import { CertificateWriter } from '../../../src/daemon/certificates/controller.ts';
import { BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG } from '../../../src/daemon/certificates/paths.ts';
import { authoritiesOf, installKubelet } from '../../../src/daemon/certificates/testing.ts';
import { NodeWriter } from '../../../src/daemon/node-writer.ts';
import { memoryHost } from '../../../src/host/memory.ts';
import { minutes } from '../../../src/kube/duration.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { certificate, TestCluster } from '../../../src/machine-config/testing.ts';
import { CONFIG_MANAGED_NAMESPACE, SERVICE_CA_ROTATE } from '../../../src/machine-config-api/names.ts';

const RESTART = ['stop kubelet.service', 'daemon-reload', 'start kubelet.service'];

test('the flag stays up until every node has the new server CA, and every kubelet is restarted once', async t => {
  const cluster = await TestCluster.create(clock => startEngine({ clock }));
  const stopping = new AbortController();
  const running: Promise<void>[] = [];
  t.after(async () => {
    stopping.abort();
    await Promise.all(running);
    await cluster.stop();
  });
  cluster.startOperator();
  cluster.startController();
  await cluster.until('rendered', async () => (await cluster.rendered('worker')).length === 1, minutes(2));
  const [before, added] = [await certificate('server-ca'), await certificate('server-ca-2')];
  const [config] = await cluster.rendered('worker');
  const nodes = await Promise.all(
    ['worker-0', 'worker-1', 'worker-2'].map(async name => {
      await cluster.addNode(name, { 'node-role.kubernetes.io/worker': '' }, config);
      const host = memoryHost();
      await installKubelet(host, before);
      host.asked.length = 0;
      const start = () => {
        const kube = cluster.watched();
        const nodeWriter = new NodeWriter({ kube, nodeName: name, clock: cluster.clock });
        const events = recordingEvents();
        const options = { kube, host, nodeName: name, nodeWriter, clock: cluster.clock, log: silentLog, events };
        running.push(new CertificateWriter(options).run(stopping.signal));
      };
      return { host, start };
    }),
  );
  const [first, second, away] = nodes;
  assert.ok(first && second && away);
  first.start();
  second.start();
  const flag = async () => (await cluster.controllerConfig()).metadata?.annotations?.[SERVICE_CA_ROTATE];
  const has = async ({ host }: typeof first) => {
    const held = await Promise.all([BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG].map(path => authoritiesOf(host, path)));
    return held.every(text => text.trimEnd() === (before + added).trimEnd());
  };

  const source = { 'ca-bundle.crt': before + added };
  await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-server-ca', source);
  await cluster.until('two nodes have it', async () => (await has(first)) && (await has(second)), minutes(5));
  assert.equal(await flag(), 'true');
  await cluster.pass(minutes(30));
  assert.equal(await flag(), 'true', 'one is missing');
  assert.equal(await has(away), false);

  away.start();
  await cluster.until('the last one has it', () => has(away), minutes(1));
  await cluster.until('the flag is down', async () => (await flag()) === 'false', minutes(30));
  for (const { host } of nodes) assert.deepEqual(host.asked, RESTART);
});
