import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { silentLog } from '../../controller/log.ts';
import { recordingEvents } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { liveObjects } from '../../staticpod/objects.ts';
import { StaticPodOperator } from '../../staticpod/operator.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';
import { CLUSTER, type Config, KUBE_API_SERVERS } from '../resources.ts';
import { testClock } from '../testing.ts';
import { targetConfigReconcile } from './controller.ts';
import type { Flavor } from './default-config.ts';

const OBSERVED: Config = {
  servingInfo: { namedCertificates: [{ certFile: '/a.crt', keyFile: '/a.key' }] },
  apiServerArguments: { 'etcd-servers': ['https://localhost:2379'] },
  admission: { pluginConfig: { 'network.openshift.io/RestrictedEndpointsAdmission': {} } },
};
const INJECT = 'config.openshift.io/inject-trusted-cabundle';

test("trusted-ca-bundle: made once; later only its label comes back, all content is somebody else's (spec 20, 2.3)", async () => {
  const { kube, reconcile, configMap } = await cluster('openshift');
  await reconcile();
  const made = await configMap('trusted-ca-bundle');
  assert.deepEqual([made?.metadata?.labels, made?.data], [{ [INJECT]: 'true' }, undefined]);
  const data = { 'ca-bundle.crt': 'PEM', extra: 'x' };
  await kube.update(CONFIG_MAPS, { ...made!, metadata: { ...made!.metadata, labels: { mine: 'yes' } }, data });
  await reconcile();
  const after = await configMap('trusted-ca-bundle');
  assert.deepEqual([after?.metadata?.labels, after?.data], [{ mine: 'yes', [INJECT]: 'true' }, data]);
  await reconcile();
  assert.equal((await configMap('trusted-ca-bundle'))?.metadata?.resourceVersion, after?.metadata?.resourceVersion);
});

for (const flavor of ['openshift', 'kubernetes'] as const) {
  test(`${flavor}: arguments that are no list of values are told, and nothing is written (spec 20, 4.3.6)`, async () => {
    const wrong = await cluster(flavor, { apiServerArguments: { 'max-requests-inflight': 4000 } });
    await wrong.reconcile();
    const condition = await wrong.condition();
    assert.deepEqual([condition?.status, condition?.reason], ['True', 'SynchronizationError']);
    assert.match(
      condition?.message ?? '',
      /^"configmap\/config": expected a list in apiServerArguments.max-requests-inflight of kube-apiserver, found a number/,
    );
    assert.equal(await wrong.configMap('config'), undefined);
  });
}

test('numbers and truth values in arguments stand for their text, as 4.16 reads them', async () => {
  const overrides = { apiServerArguments: { 'max-requests-inflight': [4000], profiling: [false] } };
  const { reconcile, configMap } = await cluster('kubernetes', overrides);
  await reconcile();
  const pod = JSON.parse((await configMap('kube-apiserver-pod'))?.data?.['pod.yaml'] ?? '{}') as Pod;
  const args = pod.spec?.containers[0]?.args ?? [];
  assert.ok(args.includes('--max-requests-inflight=4000') && args.includes('--profiling=false'), args.join(' '));
});

async function cluster(flavor: Flavor, unsupportedConfigOverrides: Config = {}) {
  const [kube, clock] = [new MemoryKube(), testClock()];
  const spec = { managementState: 'Managed', observedConfig: OBSERVED, unsupportedConfigOverrides } as const;
  await kube.create(KUBE_API_SERVERS, { metadata: CLUSTER, spec });
  for (const name of ['sa-token-signing-certs', 'bound-sa-token-signing-certs']) {
    const metadata = { namespace: OPERAND_NAMESPACE, name };
    await kube.create(CONFIG_MAPS, { metadata, data: { 'service-account-001.pub': 'x' } });
  }
  const operator = new StaticPodOperator({ kube, resource: KUBE_API_SERVERS, clock });
  const program = { flavor, image: 'i', operatorImage: 'o', operatorCommand: ['rotunda'], version: '1' };
  const options = { kube, operator, cached: liveObjects(kube), program, hasStartupMonitor: () => false };
  const context = {
    clock,
    events: recordingEvents(),
    signal: new AbortController().signal,
    log: silentLog,
    enqueue() {},
  };
  return {
    kube,
    // Other steps wait for what is not here.
    reconcile: async () => {
      await Promise.resolve(targetConfigReconcile(options)('', context)).catch(() => {});
    },
    configMap: (name: string) => getIfPresent(kube, CONFIG_MAPS, { namespace: OPERAND_NAMESPACE, name }),
    async condition() {
      const { status } = await kube.get(KUBE_API_SERVERS, CLUSTER);
      return status?.conditions?.find(({ type }) => type === 'TargetConfigControllerDegraded');
    },
  };
}
