import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Engine, startEngine } from '../../api/api.ts';
import { silentLog } from '../../controller/log.ts';
import { memoryHost } from '../../host/memory.ts';
import { systemClock } from '../../kube/clock.ts';
import { KubeError } from '../../kube/error.ts';
import { recordingEvents } from '../../kube/events.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, type Resource } from '../../kube/resource.ts';
import { installDefinitions } from '../../machine-config/testing.ts';
import { CONTROLLER_CONFIGS, type ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import {
  CONTROLLER_CONFIG_NAME,
  KUBECONFIG_DATA,
  LAST_OBSERVED_SERVER_CA,
  LAST_SYNCED_CONTROLLER_CONFIG,
  MCO_NAMESPACE,
  SERVER_CA_DIGEST,
  SERVICE_CA_ROTATE,
} from '../../machine-config-api/names.ts';
import { serverCaDigest } from '../../machine-config-api/server-ca-digest.ts';
import { caDigest, decodeReceipts, NODE_RECEIPTS, type NodeReceipt } from '../../trust/receipts.ts';
import { NodeWriter } from '../node-writer.ts';
import { readBundle } from './bundle.ts';
import { CertificateWriter, type CertificateWriterOptions } from './controller.ts';
import { KubeletRestart } from './kubelet.ts';
import { KUBELET, KUBELET_CA, LIVE_KUBECONFIG, OS_PULL_SECRET, REGISTRY_CAS } from './paths.ts';
import type { CertificateProblem } from './problem.ts';
import { ensureServerCa } from './server-ca.ts';
import { authoritiesOf, base64, ca, controllerConfig, installKubelet, kubeconfigData } from './testing.ts';

const NODE = 'worker-0';
const [A, B, C] = [await ca('a'), await ca('b'), await ca('kube-apiserver-lb-signer')];

describe('the certificate writer on the API', () => {
  test('files first, then the word on the node; a changed file is mended; nothing is done without need', async t => {
    const { host, api, annotations, start } = await setUp(t);
    start();
    await until('the first bundle is there', async () => (await host.files.read(KUBELET_CA))?.toString() === A);
    const { metadata } = await api.kube.get(CONTROLLER_CONFIGS, { name: CONTROLLER_CONFIG_NAME });
    await until(
      'it is acknowledged',
      async () => (await annotations())[LAST_SYNCED_CONTROLLER_CONFIG] === metadata?.resourceVersion,
    );
    assert.equal((await annotations())[SERVER_CA_DIGEST], serverCaDigest(Buffer.from(A)));
    assert.equal((await host.files.stat(OS_PULL_SECRET))?.mode, 0o600);

    for (const path of [KUBELET_CA, `${REGISTRY_CAS}/r:5000/ca.crt`]) {
      await host.files.write(path, Buffer.from('evil\n'));
      await until(`${path} is mended`, async () => (await host.files.read(path))?.toString() === A);
      await host.files.remove(path);
      await until(`${path} is back`, async () => (await host.files.read(path))?.toString() === A);
    }
    const body = { metadata: { annotations: { [SERVER_CA_DIGEST]: null } } };
    await api.kube.patch(NODES, { name: NODE }, { type: 'merge', body });
    await until('it is said again', async () => SERVER_CA_DIGEST in (await annotations()));
    assert.deepEqual(host.asked, [], 'no restart');
    assert.equal((await api.kube.get(NODES, { name: NODE })).spec?.unschedulable, undefined);
  });

  test('a new server CA is taken over by its content, and said to be when the kubelet runs again', async t => {
    const { host, api, annotations, start, change } = await setUp(t);
    start();
    await until('the first bundle is taken', async () => SERVER_CA_DIGEST in (await annotations()));
    let isStopped = false;
    const stopped = host.services.stop;
    // The node must not say that it is done while the kubelet is down.
    Object.assign(host.services, {
      stop: async (unit: string) => {
        await stopped(unit);
        isStopped = !(await host.services.isActive(KUBELET));
        assert.notEqual((await annotations())[SERVER_CA_DIGEST], serverCaDigest(Buffer.from(A + B)));
      },
    });
    await api.kube.update(CONFIG_MAPS, kubeconfigData(A + B));
    await until(
      'it is taken',
      async () => (await annotations())[SERVER_CA_DIGEST] === serverCaDigest(Buffer.from(A + B)),
    );
    assert.equal(isStopped, true);
    assert.equal(await host.services.isActive(KUBELET), true);
    assert.equal(await authoritiesOf(host, LIVE_KUBECONFIG), (A + B).trimEnd());
    await change({}, { [SERVICE_CA_ROTATE]: 'true', [SERVER_CA_DIGEST]: serverCaDigest(Buffer.from(A + B)) });
    await until('the flag is observed', async () => (await annotations())[LAST_OBSERVED_SERVER_CA] === 'true');
    assert.deepEqual(host.asked, ['stop kubelet.service', 'daemon-reload', 'start kubelet.service']);
  });

  test('what the kubelet has loaded is said when it has, and at rest nothing is written (spec 90, HO-9, HO-11)', async t => {
    const { host, api, annotations, start, patches, problems } = await setUp(t);
    const loaded = async () => decodeReceipts((await annotations())[NODE_RECEIPTS]);
    const kubelet = (bundle: string): NodeReceipt[] => [
      { process: 'kubelet', file: LIVE_KUBECONFIG, kind: 'started', cas: digestsIn(bundle) },
    ];
    // Neither a rotation nor a kubeconfig-data is needed for it.
    await api.kube.delete(CONFIG_MAPS, { namespace: MCO_NAMESPACE, name: KUBECONFIG_DATA });
    start();
    await until('it is said', async () => isDeepStrictEqual(await loaded(), kubelet(A)));
    await api.kube.create(CONFIG_MAPS, kubeconfigData(A + B));
    await until('the new one too', async () => isDeepStrictEqual(await loaded(), kubelet(A + B)));
    assert.deepEqual(host.asked, ['stop kubelet.service', 'daemon-reload', 'start kubelet.service']);
    await api.kube.update(CONFIG_MAPS, kubeconfigData(A + B + C));
    const digest = serverCaDigest(Buffer.from(A + B + C));
    await until('a deferred one is taken', async () => (await annotations())[SERVER_CA_DIGEST] === digest);
    assert.deepEqual(await loaded(), kubelet(A + B));
    const [written, passes] = [patches.length, problems.length];
    await host.files.write(LIVE_KUBECONFIG, (await host.files.read(LIVE_KUBECONFIG)) ?? Buffer.alloc(0));
    await until('a pass is over', async () => problems.length > passes);
    assert.equal(patches.length, written);
    await api.kube.patch(
      NODES,
      { name: NODE },
      { type: 'merge', body: { metadata: { annotations: { [NODE_RECEIPTS]: '[]' } } } },
    );
    await until('it is said again', async () => isDeepStrictEqual(await loaded(), kubelet(A + B)));
    await host.files.write(LIVE_KUBECONFIG, Buffer.from('token: : hunter2'));
    await until('it is taken back', async () => isDeepStrictEqual(await loaded(), []));
  });

  test('the kubelet is not restarted while something else on its node is, and nothing is said before (spec 90, HO-5)', async t => {
    const { host, api, annotations, start } = await setUp(t);
    let isBusy = true;
    let asked = 0;
    const mayRestart = async () => {
      asked++;
      return !isBusy;
    };
    start(api.kube, { mayRestart });
    await until('the first bundle is taken', async () => SERVER_CA_DIGEST in (await annotations()));
    await api.kube.update(CONFIG_MAPS, kubeconfigData(A + B));
    await until('it is asked again', async () => asked >= 2);
    assert.deepEqual(host.asked, []);
    assert.equal(await authoritiesOf(host, LIVE_KUBECONFIG), A);
    assert.equal((await annotations())[SERVER_CA_DIGEST], serverCaDigest(Buffer.from(A)));
    isBusy = false;
    const digest = serverCaDigest(Buffer.from(A + B));
    await until('it is taken', async () => (await annotations())[SERVER_CA_DIGEST] === digest);
    assert.deepEqual(host.asked, ['stop kubelet.service', 'daemon-reload', 'start kubelet.service']);
  });

  test('an agent that is started anew says of the kubelet what the one before it knew', async t => {
    const { host, api, annotations, start } = await setUp(t);
    await ensureServerCa(host, Buffer.from(A + C), []);
    assert.equal(await new KubeletRestart(host).due(), 'deferred');
    await api.kube.update(CONFIG_MAPS, kubeconfigData(A + C));
    start();
    await until('it has passed', async () => SERVER_CA_DIGEST in (await annotations()));
    const said = decodeReceipts((await annotations())[NODE_RECEIPTS]);
    assert.deepEqual(
      said?.map(({ cas }) => cas),
      [digestsIn(A)],
    );
  });

  test('bad input is an event and a problem, once, and gone when it is good again', async t => {
    const { host, events, problems, start, change } = await setUp(t);
    start();
    await until('the first bundle is there', async () => (await host.files.read(KUBELET_CA)) !== undefined);
    await change({ kubeAPIServerServingCAData: '', internalRegistryPullSecret: base64('{"auths":{}}') });
    await until('it is reported', async () => problems.at(-1)?.length === 1);
    await change({ kubeAPIServerServingCAData: '', cloudProviderCAData: base64(B) });
    await until('the next pass is over', async () => problems.filter(list => list.length > 0).length >= 2);
    assert.equal((await host.files.read(KUBELET_CA))?.toString(), A);
    assert.deepEqual(
      events.events.map(({ type, reason }) => [type, reason]),
      [['Warning', 'EmptyTrustBundle']],
    );
    await change({ kubeAPIServerServingCAData: base64(B) });
    await until('all is well', async () => problems.at(-1)?.length === 0);
    assert.equal((await host.files.read(KUBELET_CA))?.toString(), B);
  });

  test('a ConfigMap that may not be read does not hold CA files back', async t => {
    const { host, start, api } = await setUp(t);
    start(forbidding(api.kube, CONFIG_MAPS));
    await until('the first bundle is there', async () => (await host.files.read(KUBELET_CA))?.toString() === A);
  });

  test('a Node that the credentials of the node do not open holds nothing back: they may be what has to be mended', async t => {
    const { host, api, annotations, start } = await setUp(t);
    start(forbidding(api.kube, NODES));
    await until('the first bundle is there', async () => (await host.files.read(KUBELET_CA))?.toString() === A);
    await api.kube.update(CONFIG_MAPS, kubeconfigData(A + B));
    await until('the new CA is trusted', async () =>
      (await authoritiesOf(host, LIVE_KUBECONFIG)).includes(B.trimEnd()),
    );
    assert.deepEqual(await annotations(), {}, 'what cannot be read is not written over');
  });

  test('a kubelet that was stopped when the agent died is started before the API is asked for anything', async t => {
    const { host, start } = await setUp(t);
    await new KubeletRestart(host).record('now');
    await host.services.stop(KUBELET);
    const unreachable = new Proxy({} as Kube, {
      get: () => () => {
        throw new KubeError(503, 'ServiceUnavailable', 'not now');
      },
    });
    start(unreachable);
    await until('it runs', () => host.services.isActive(KUBELET));
  });

  test('a restart that was put off comes when the API is no longer believed, and the process ends', async t => {
    const { host, api, annotations, start } = await setUp(t);
    const { writer, running } = start();
    await api.kube.update(CONFIG_MAPS, kubeconfigData(A + C));
    const digest = serverCaDigest(Buffer.from(A + C));
    await until('it is taken', async () => (await annotations())[SERVER_CA_DIGEST] === digest);
    assert.equal(await new KubeletRestart(host).due(), 'deferred');
    await writer.connectionFailed(new Error('socket hang up'));
    assert.deepEqual(host.asked, []);
    await writer.connectionFailed(Object.assign(new Error('no'), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }));
    await assert.rejects(running, { name: 'AgentMustRestart', exitCode: 255 });
    assert.deepEqual(host.asked, ['stop kubelet.service', 'daemon-reload', 'start kubelet.service']);
    assert.equal(await new KubeletRestart(host).due(), 'none');
  });
});

/** A node with a kubelet and a ControllerConfig, nothing running yet. */
async function setUp(t: { after(end: () => Promise<void>): void }) {
  const api: Engine = await startEngine({});
  await installDefinitions(api);
  await api.kube.create(NAMESPACES, { metadata: { name: MCO_NAMESPACE } });
  await api.kube.create(NODES, { metadata: { name: NODE, labels: { 'node-role.kubernetes.io/worker': '' } } });
  await api.kube.create(CONFIG_MAPS, kubeconfigData(A));
  await api.kube.create(
    CONTROLLER_CONFIGS,
    controllerConfig({
      kubeAPIServerServingCAData: base64(A),
      imageRegistryBundleData: [{ file: 'r..5000', data: base64(A) }],
      internalRegistryPullSecret: base64('{"auths":{}}'),
    }),
  );
  const host = memoryHost();
  await installKubelet(host, A);
  host.asked.length = 0;
  const events = recordingEvents();
  const patches: unknown[] = [];
  const counted: Pick<Kube, 'get' | 'patch'> = {
    get: (...args) => api.kube.get(...args),
    patch: (...args) => {
      patches.push(args);
      return api.kube.patch(...args);
    },
  };
  const problems: (readonly CertificateProblem[])[] = [];
  const stop = new AbortController();
  const started: Promise<unknown>[] = [];
  t.after(async () => {
    stop.abort();
    await Promise.allSettled(started);
    await api.close();
  });
  return {
    api,
    host,
    events,
    patches,
    problems,
    annotations: async () => (await api.kube.get(NODES, { name: NODE })).metadata?.annotations ?? {},
    change: (spec: ControllerConfigSpec, annotations: Record<string, string> = {}) =>
      api.kube.patch(
        CONTROLLER_CONFIGS,
        { name: CONTROLLER_CONFIG_NAME },
        { type: 'merge', body: { spec, metadata: { annotations } } },
      ),
    start(kube: Kube = api.kube, restartTurn?: CertificateWriterOptions['restartTurn']) {
      const writer = new CertificateWriter({
        kube,
        host,
        events,
        nodeName: NODE,
        nodeWriter: new NodeWriter({ kube: counted as Kube, nodeName: NODE }),
        clock: systemClock,
        log: silentLog,
        restartTurn,
        onProblems: list => problems.push(list),
      });
      const running = writer.run(stop.signal);
      started.push(running.catch(() => {}));
      return { writer, running };
    },
  };
}

/** The same API, which refuses one kind of object. */
function forbidding(kube: Kube, refused: Resource): Kube {
  return new Proxy(kube, {
    get: (target, name: keyof Kube) => {
      return (resource: Resource, ...args: never[]) => {
        if (resource.plural === refused.plural) throw new KubeError(403, 'Forbidden', 'not for you');
        return (target[name] as (...args: unknown[]) => unknown).call(target, resource, ...args);
      };
    },
  });
}

function digestsIn(bundle: string): string[] {
  return readBundle(Buffer.from(bundle)).certificates.map(caDigest).toSorted();
}

const LONGEST_WAIT_MS = 600_000;

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + LONGEST_WAIT_MS; !(await isSo()); await setImmediate()) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
  }
}
