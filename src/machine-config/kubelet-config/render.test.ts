import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { decodeDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import { checkKubeletConfig, KubeletConfigError, type KubeletDefaults, kubeletFiles } from './render.ts';

const defaults: KubeletDefaults = {
  pool: 'worker',
  controllerConfig: { clusterDNSIP: '10.0.0.10' },
  nodeConfig: undefined,
  tlsProfile: undefined,
  featureGates: {},
};

function confOf(kubeletConfig: object): Record<string, unknown> {
  const files = kubeletFiles({ spec: { kubeletConfig } }, defaults);
  const file = files.find(({ path }) => path === '/etc/kubernetes/kubelet.conf');
  return JSON.parse(decodeDataUrl(file?.contents?.source ?? '')?.toString() ?? '') as Record<string, unknown>;
}

describe('a KubeletConfig is read by the types of the kubelet', () => {
  const refused: [object, string][] = [
    [
      { maxPods: '500' },
      'json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32',
    ],
    [
      { maxPods: 1.5 },
      'json: cannot unmarshal number 1.5 into Go struct field KubeletConfiguration.maxPods of type int32',
    ],
    [
      { kubeAPIQPS: 3e9 },
      'json: cannot unmarshal number 3000000000 into Go struct field KubeletConfiguration.kubeAPIQPS of type int32',
    ],
    [{ evictionPressureTransitionPeriod: '5 minutes' }, 'time: unknown unit " minutes" in duration "5 minutes"'],
    [{ evictionPressureTransitionPeriod: '5' }, 'time: missing unit in duration "5"'],
    [
      { evictionPressureTransitionPeriod: 300 },
      'json: cannot unmarshal number into Go struct field KubeletConfiguration.evictionPressureTransitionPeriod of type string',
    ],
    [
      { evictionHard: { 'memory.available': 5 } },
      'json: cannot unmarshal number into Go struct field KubeletConfiguration.evictionHard of type string',
    ],
    [
      { authentication: { anonymous: { enabled: 'no' } } },
      'json: cannot unmarshal string into Go struct field KubeletAnonymousAuthentication.authentication.anonymous.enabled of type bool',
    ],
    [
      { registerWithTaints: [{ key: 1 }] },
      'json: cannot unmarshal number into Go struct field Taint.registerWithTaints.key of type string',
    ],
    [{ reservedMemory: [{ limits: { memory: '1Gii' } }] }, "unable to parse quantity's suffix"],
  ];
  for (const [kubeletConfig, why] of refused) {
    test(`${JSON.stringify(kubeletConfig)} is refused`, () =>
      assert.throws(() => checkKubeletConfig({ spec: { kubeletConfig } }), {
        name: 'KubeletConfigError',
        message: `KubeletConfig could not be unmarshalled, err: ${why}`,
      }));
  }

  test('fields of the cluster are refused by the name they have there, in whatever spelling', () => {
    const says = (kubeletConfig: object, message: string) =>
      assert.throws(() => checkKubeletConfig({ spec: { kubeletConfig } }), new KubeletConfigError(message));
    says({ StaticPodPath: '/x' }, 'KubeletConfiguration: staticPodPath is not allowed to be set, but contains: /x');
    says({ clusterDNS: ['a', 'b'] }, 'KubeletConfiguration: clusterDNS is not allowed to be set, but contains: [a b]');
    says(
      { featureGates: { B: true, A: false } },
      'KubeletConfiguration: featureGates is not allowed to be set, but contains: map[A:false B:true]',
    );
  });

  test('an unknown field says nothing', () => {
    checkKubeletConfig({ spec: { kubeletConfig: { inventedHere: {} } } });
    assert.deepEqual(confOf({ inventedHere: {} }), confOf({}));
  });
});

describe('a zero value never takes away what the template says', () => {
  const zero: object[] = [
    { staticPodPath: '' },
    { clusterDNS: [] },
    { maxPods: 0 },
    { kubeAPIQPS: 0 },
    { nodeStatusUpdateFrequency: '0s' },
    { tlsMinVersion: '', tlsCipherSuites: [] },
    { rotateCertificates: false, serverTLSBootstrap: false },
    { authentication: { x509: { clientCAFile: '' } } },
    { cgroupDriver: null },
  ];
  for (const kubeletConfig of zero) {
    test(JSON.stringify(kubeletConfig), () => {
      checkKubeletConfig({ spec: { kubeletConfig } });
      assert.deepEqual(confOf(kubeletConfig), confOf({}));
    });
  }

  test('but it counts where the template says nothing, and protectKernelDefaults can be switched off', () => {
    assert.equal(confOf({})['protectKernelDefaults'], true);
    assert.equal(confOf({ protectKernelDefaults: false })['protectKernelDefaults'], undefined);
    assert.equal(confOf({ registryPullQPS: 0 })['registryPullQPS'], 0);
    assert.equal(confOf({ failSwapOn: false })['failSwapOn'], false);
  });

  test('what is said counts, in the form the kubelet writes', () => {
    const conf = confOf({
      maxPods: 500,
      evictionPressureTransitionPeriod: '90s',
      evictionHard: { 'nodefs.available': '10%' },
    });
    assert.equal(conf['maxPods'], 500);
    assert.equal(conf['evictionPressureTransitionPeriod'], '1m30s');
    assert.deepEqual(conf['evictionHard'], { 'nodefs.available': '10%' });
    assert.equal(conf['kind'], 'KubeletConfiguration');
  });
});
