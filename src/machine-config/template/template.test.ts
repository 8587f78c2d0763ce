import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import { decodeDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import { readIgnition } from '../../machine-config-api/ignition/read.ts';
import { mergeMachineConfigs } from '../render/merge.ts';
import { canonicalSpec } from '../render/name.ts';
import { generateForRole, generateMachineConfigs } from './generate.ts';
import { compactJson } from './pull-secret.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const SPEC: ControllerConfigSpec = {
  rootCAData: base64('root\n\n\n'),
  additionalTrustBundle: null,
  cloudProviderConfig: '[Global]\nx=1\n',
  infra: { status: { platformStatus: { type: 'None' }, apiServerInternalURI: 'https://api-int:6443' } },
  clusterDNSIP: '172.30.0.10',
  ipFamilies: 'IPv4',
  baseOSContainerImage: 'os@1',
};
const files = (role: string, spec = SPEC, pullSecret = '{"auths":{}}') =>
  new Map(
    generateForRole(role, spec, pullSecret).flatMap(({ metadata, spec: { config } = {} }) =>
      (readIgnition(config)?.storage?.files ?? []).map(
        ({ path, mode, contents }) =>
          [path, { config: metadata?.name, mode, text: decodeDataUrl(contents?.source ?? '')?.toString() }] as const,
      ),
    ),
  );

describe('which template holds which data (5.4)', () => {
  const table: [path: string, config: string, mode: number, text: string][] = [
    ['/etc/kubernetes/ca.crt', '00-worker', 0o644, 'root\n'],
    ['/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt', '00-worker', 0o600, ''],
    ['/var/lib/kubelet/config.json', '00-worker', 0o600, '{"auths":{}}\n'],
    ['/etc/kubernetes/cloud.conf', '01-worker-kubelet', 0o644, '[Global]\nx=1'],
  ];
  for (const [path, config, mode, text] of table) {
    test(path, () => assert.deepEqual(files('worker').get(path), { config, mode, text }));
  }

  test('a pool of its own gets the templates of workers under its name (TM-9)', () => {
    const [first] = generateForRole('infra', SPEC, '');
    assert.equal(first?.metadata?.name, '00-worker');
    assert.equal(first?.metadata?.labels?.['machineconfiguration.openshift.io/role'], 'infra');
  });

  test('a proxy is in its file and named by the services', () => {
    const proxied = { ...SPEC, proxy: { httpProxy: 'http://p', noProxy: '.x' } };
    assert.match(
      files('master', proxied).get('/etc/mco/proxy.env')?.text ?? '',
      /\nHTTP_PROXY=http:\/\/p\nNO_PROXY=\.x\n$/,
    );
    assert.doesNotMatch(files('master').get('/etc/mco/proxy.env')?.text ?? '', /HTTP_PROXY/);
  });
});

test('what travels the certificate path is in no rendered config: no rotation can reboot a node', () => {
  const rendered = (spec: ControllerConfigSpec) =>
    canonicalSpec(mergeMachineConfigs(generateForRole('worker', spec, '{}'), spec)!);
  const bytes = fc.base64String();
  const certificates = fc.record({
    kubeAPIServerServingCAData: bytes,
    cloudProviderCAData: bytes,
    internalRegistryPullSecret: bytes,
    imageRegistryBundleData: fc.array(fc.record({ file: fc.domain(), data: bytes })),
    imageRegistryBundleUserData: fc.array(fc.record({ file: fc.domain(), data: bytes })),
  });
  fc.assert(
    fc.property(certificates, each => assert.equal(rendered({ ...SPEC, ...each }), rendered(SPEC))),
    { numRuns: 20 },
  );
  assert.notEqual(rendered({ ...SPEC, rootCAData: base64('other') }), rendered(SPEC));
});

test('everything that is generated carries its maker, its owner and the OS image (TM-7)', () => {
  const configs = generateMachineConfigs(
    { metadata: { name: 'machine-config-controller', uid: 'u' }, spec: SPEC },
    '',
    'hash',
  );
  assert.equal(configs.length, 6);
  for (const { metadata, spec } of configs) {
    assert.equal(metadata?.annotations?.['machineconfiguration.openshift.io/generated-by-controller-version'], 'hash');
    assert.equal(metadata?.ownerReferences?.[0]?.kind, 'ControllerConfig');
    assert.equal(spec?.osImageURL, 'os@1');
  }
});

test('a pull secret is compacted without its order or its texts being touched', () => {
  assert.equal(compactJson('{ "b" : { "x y": "a \\" b" } ,\n "1": [ 1 , 2 ] }'), '{"b":{"x y":"a \\" b"},"1":[1,2]}');
  assert.throws(() => compactJson('{ geheim'), {
    message: 'secret openshift-config/pull-secret: .dockerconfigjson: is not JSON',
  });
  fc.assert(
    fc.property(fc.jsonValue(), value =>
      assert.equal(compactJson(JSON.stringify(value, null, 2)), JSON.stringify(value)),
    ),
  );
});
