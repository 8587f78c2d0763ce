import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Container } from 'kubernetes-types/core/v1.d.ts';
import { parseCertSyncerOptions } from '../../staticpod/node/cert-syncer.ts';
import { parseStartupMonitorOptions } from '../../staticpod/node/startup-monitor.ts';
import { substituteTokens } from '../../staticpod/node/tokens.ts';
import { UNREVISIONED } from '../operand-objects.ts';
import { parseInsecureReadyzOptions } from '../programs/insecure-readyz.ts';
import { parseCertRegenerationOptions, parseCheckEndpointsOptions } from '../programs/options.ts';
import type { Config } from '../resources.ts';
import { serverConfig, serverFlags } from './config.ts';
import { canonicalJson, mergeConfigs, nested, prunedTo, valueAt } from './merge.ts';
import { kubeApiserverPod, type Server } from './pod.ts';
import { recoveryTokenProblem } from './recovery-token.ts';
import { missingConfig } from './required-config.ts';
import { startupMonitorPod } from './startup-monitor-pod.ts';
import { podValues } from './template.ts';

describe('merging configurations (spec 20, 4.3.6)', () => {
  test('mappings merge, lists and values are replaced, nothing stays nothing', () => {
    const merged = mergeConfigs({ a: { x: [1, 2], y: 1 }, b: 1 }, null, { a: { x: [3] }, b: { c: null } }, undefined);
    assert.deepEqual(merged, { a: { x: [3], y: 1 }, b: { c: null } });
  });

  test('the text does not depend on the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), object => {
        const reversed = Object.fromEntries(Object.entries(object).reverse());
        assert.equal(canonicalJson(object as Config), canonicalJson(reversed as Config));
      }),
    );
  });

  test('names that mean something to JavaScript are keys like others', () => {
    const config = mergeConfigs(JSON.parse('{"__proto__":{"polluted":1},"constructor":{"a":1}}') as Config);
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
    assert.deepEqual(valueAt(config, ['constructor', 'a']), 1);
    assert.equal(valueAt({}, ['constructor']), undefined);
    assert.deepEqual(prunedTo({ a: { b: 1, c: 2 } }, [['a', 'b'], ['x']]), { a: { b: 1 } });
    assert.deepEqual(nested(['a'], undefined), {});
  });

  test('what only the operator reads does not reach the server; overrides come last', () => {
    const config = serverConfig('openshift', {
      observedConfig: {
        gracefulTerminationDuration: '15',
        targetconfigcontroller: { proxy: {} },
        servicesSubnet: '10.0.0.0/16',
      },
      unsupportedConfigOverrides: {
        servicesSubnet: '10.1.0.0/16',
        startupMonitor: true,
        apiServerArguments: { 'event-ttl': ['1h'] },
      },
    });
    assert.deepEqual(
      [config.gracefulTerminationDuration, config.targetconfigcontroller, config.startupMonitor],
      [undefined, undefined, undefined],
    );
    assert.equal(config.servicesSubnet, '10.1.0.0/16');
    assert.deepEqual(valueAt(config, ['apiServerArguments', 'event-ttl']), ['1h']);
  });

  const withOverrides = (unsupportedConfigOverrides: Config) =>
    serverConfig('openshift', { unsupportedConfigOverrides });

  test('fields that the server does not know are left out at every depth, those of 4.16 are kept', () => {
    const config = withOverrides({
      aggregatorConfig: { proxyClientInfo: { certFile: '/a', bogus: 1 } },
      auditConfig: { enabled: true, policyConfiguration: { any: { depth: 1 } }, bogus: 1 },
      admission: { pluginConfig: { p: { location: '', configuration: { any: [1] }, bogus: 1 } } },
      minimumKubeletVersion: '1.30.0',
      oauthConfig: { masterURL: 'https://m', bogus: 1 },
      servingInfo: { bogus: 1, namedCertificates: [{ certFile: '/c', keyFile: '/k', bogus: 1 }] },
      constructor: { bogus: 1 },
    });
    assert.deepEqual(config.aggregatorConfig, { proxyClientInfo: { certFile: '/a' } });
    assert.deepEqual(config.auditConfig, { enabled: true, policyConfiguration: { any: { depth: 1 } } });
    assert.deepEqual(valueAt(config, ['admission', 'pluginConfig', 'p']), {
      location: '',
      configuration: { any: [1] },
    });
    assert.ok(!Object.hasOwn(config, 'minimumKubeletVersion') && !Object.hasOwn(config, 'constructor'));
    assert.deepEqual(config.oauthConfig, { masterURL: 'https://m' });
    assert.deepEqual(config.servingInfo, {
      bindAddress: '0.0.0.0:6443',
      bindNetwork: 'tcp4',
      namedCertificates: [{ certFile: '/c', keyFile: '/k' }],
    });
  });

  for (const [what, overrides, message] of [
    [
      'another kind',
      { kind: 'Other' },
      /^\/Other does not equal kubecontrolplane.config.openshift.io\/v1\/KubeAPIServerConfig$/,
    ],
    ['half a type', { kind: 'KubeAPIServerConfig' }, /does not equal/],
    ['a text as a mapping', { servingInfo: 'x' }, /expected a mapping in servingInfo of kube-apiserver, found a text/],
    ['a list as arguments', { apiServerArguments: [] }, /expected a mapping in apiServerArguments .*found a list/],
    ['a text as an argument', { apiServerArguments: { a: 'x' } }, /expected a list in apiServerArguments.a/],
    ['a list in an argument', { apiServerArguments: { a: [['x']] } }, /expected a text in apiServerArguments.a\[0\]/],
    ['an argument without value', { apiServerArguments: { a: [null] } }, /apiServerArguments.a\[0\] .*found null/],
    ['a number as a text', { corsAllowedOrigins: [1] }, /corsAllowedOrigins\[0\] .*found a number/],
  ] as [string, Config, RegExp][]) {
    test(`${what} is refused`, () => assert.throws(() => withOverrides(overrides), { message }));
  }

  test('a layer may say what it is', () => {
    const type = { apiVersion: 'kubecontrolplane.config.openshift.io/v1', kind: 'KubeAPIServerConfig' };
    assert.equal(withOverrides({ ...type, servicesSubnet: '10.9.0.0/16' }).servicesSubnet, '10.9.0.0/16');
    assert.equal(valueAt(withOverrides({ apiServerArguments: { a: null } }), ['apiServerArguments', 'a']), null);
  });
});

describe('the pod (spec 20, section 4)', () => {
  const build = (server: Server = { flavor: 'openshift' }, spec = {}) =>
    kubeApiserverPod(podValues(spec), {
      image: 'operand',
      operatorImage: 'operator',
      operatorCommand: ['rotunda'],
      server,
    });
  const container = (name: string, pod = build()) =>
    [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].find(
      each => each.name === name,
    ) as Container;

  test('what a node puts in stands exactly where it should', () => {
    const text = substituteTokens(Buffer.from(JSON.stringify(build())), { revision: '7', nodeName: 'm0' }).toString();
    assert.doesNotMatch(text, /REVISION|NODE_NAME/);
    const pod = JSON.parse(text) as ReturnType<typeof build>;
    assert.equal(pod.metadata?.labels?.revision, '7');
    assert.deepEqual(
      pod.spec?.volumes?.map(({ hostPath }) => hostPath?.path),
      [
        '/etc/kubernetes/static-pod-resources/kube-apiserver-pod-7',
        '/etc/kubernetes/static-pod-resources/kube-apiserver-certs',
        '/var/log/kube-apiserver',
      ],
    );
  });

  test('probes, requests and mounts', () => {
    const server = container('kube-apiserver');
    const timing = ({
      periodSeconds,
      timeoutSeconds,
      failureThreshold,
      httpGet,
    }: NonNullable<Container['startupProbe']>) =>
      [httpGet?.path, periodSeconds, timeoutSeconds, failureThreshold].join(' ');
    assert.equal(timing(server.startupProbe!), 'healthz 5 10 30');
    assert.equal(timing(server.livenessProbe!), 'livez 10 10 3');
    assert.equal(timing(server.readinessProbe!), 'readyz 5 10 1');
    assert.deepEqual(server.resources?.requests, { memory: '1Gi', cpu: '265m' });
    assert.deepEqual(
      container('kube-apiserver-cert-regeneration-controller').volumeMounts?.map(({ name }) => name),
      ['resource-dir'],
    );
    assert.equal(container('kube-apiserver-insecure-readyz').volumeMounts, undefined);
    assert.equal(container('kube-apiserver-check-endpoints').livenessProbe?.initialDelaySeconds, 10);
  });

  test('our own programs understand what they are given', () => {
    const args = (name: string) => (container(name).args ?? []).map(arg => arg.replace('$(POD_NAMESPACE)', 'ns'));
    const syncer = parseCertSyncerOptions(args('kube-apiserver-cert-syncer'), {}, UNREVISIONED);
    assert.equal(syncer.destinationDir, '/etc/kubernetes/static-pod-certs');
    assert.equal(parseInsecureReadyzOptions(args('kube-apiserver-insecure-readyz')).port, 6080);
    const regeneration = parseCertRegenerationOptions(args('kube-apiserver-cert-regeneration-controller'), {});
    assert.deepEqual([regeneration.namespace, regeneration.kubeconfig], ['ns', syncer.kubeconfig]);
    assert.equal(regeneration.keyAlgorithm, undefined);
    const pod = kubeApiserverPod(podValues({}), {
      image: 'operand',
      operatorImage: 'operator',
      operatorCommand: ['rotunda'],
      server: { flavor: 'openshift' },
      keyAlgorithm: 'P-256',
    });
    const given = container('kube-apiserver-cert-regeneration-controller', pod).args ?? [];
    assert.equal(parseCertRegenerationOptions(given, {}).keyAlgorithm, 'P-256');
    assert.throws(() => parseCertRegenerationOptions(['--namespace=x', '--key-algorithm=x'], {}), /RSA-2048, /);
    const checks = parseCheckEndpointsOptions(args('kube-apiserver-check-endpoints'), { POD_NAME: 'p' });
    assert.deepEqual([checks.host, checks.port, checks.podName], ['0.0.0.0', 17697, 'p']);
    assert.throws(() => parseCheckEndpointsOptions(['--listen=x'], { POD_NAME: 'p' }), /--listen: expected/);
    const monitor = startupMonitorPod({ operatorImage: 'o', operatorCommand: ['rotunda'], verbosity: 2 });
    const ofMonitor = monitor.spec?.containers[0]?.args?.map(arg => arg.replace('=REVISION', '=7')) ?? [];
    const options = parseStartupMonitorOptions(ofMonitor);
    assert.deepEqual([options.targetName, options.revision, options.fallbackTimeoutMs], ['kube-apiserver', 7, 300_000]);
  });

  test('the setup container has as long as the old server may take, and then some', () => {
    assert.deepEqual(
      container('setup', build(undefined, { observedConfig: { gracefulTerminationDuration: '194' } })).command?.slice(
        0,
        2,
      ),
      ['/usr/bin/timeout', '279'],
    );
    assert.throws(
      () => podValues({ observedConfig: { gracefulTerminationDuration: 'soon' } }),
      /whole number in gracefulTerminationDuration, found "soon"/,
    );
    assert.throws(
      () => podValues({ observedConfig: { garbageCollectionTargetPercentage: 'off' } }),
      /garbageCollectionTargetPercentage/,
    );
  });

  for (const [field, value] of [
    ['gracefulTerminationDuration', null],
    ['gracefulTerminationDuration', '-5'],
    ['gracefulTerminationDuration', '99999999999999999999'],
    ['gracefulTerminationDuration', 70],
    ['garbageCollectionTargetPercentage', ''],
    ['garbageCollectionTargetPercentage', null],
    ['garbageCollectionTargetPercentage', '99999999999999999999'],
  ] as const) {
    test(`${JSON.stringify(value)} is no ${field} (spec 20, 4.3.1)`, () => {
      assert.throws(() => podValues({ unsupportedConfigOverrides: { [field]: value } }), new RegExp(field));
    });
  }

  test('no text is the usual time; a proxy must be a mapping of texts', () => {
    assert.equal(podValues({ observedConfig: { gracefulTerminationDuration: '' } }).gracefulTerminationSeconds, 135);
    assert.deepEqual(podValues({ observedConfig: { targetconfigcontroller: null } }).proxy, []);
    assert.throws(() => podValues({ observedConfig: { targetconfigcontroller: 'x' } }), /expected a mapping/);
    for (const proxy of [null, 'x', { HTTP_PROXY: 1 }]) {
      assert.throws(() => podValues({ observedConfig: { targetconfigcontroller: { proxy } } }), /proxy/);
    }
  });

  test('the plain kube-apiserver gets flags instead of a file', () => {
    const named = [
      { certFile: '/a.crt', keyFile: '/a.key' },
      { certFile: '/b.crt', keyFile: '/b.key', names: ['b', '*.b'] },
    ];
    const config = serverConfig('kubernetes', {
      observedConfig: {
        servingInfo: { bindAddress: '[::]:6443', namedCertificates: named },
        servicesSubnet: 'fd02::/112',
        corsAllowedOrigins: ['//a.it(:|$)', '//b.it(:|$)'],
        apiServerArguments: { 'cloud-config': ['/cloud.conf'] },
      },
    });
    const flags = serverFlags(config, directory => (directory.includes('/bound-') ? ['2.pub'] : ['1.pub']));
    for (const flag of [
      '--bind-address=::',
      '--cors-allowed-origins=//a.it(:|$)',
      '--cors-allowed-origins=//b.it(:|$)',
      '--secure-port=6443',
      '--service-cluster-ip-range=fd02::/112',
      '--tls-sni-cert-key=/a.crt,/a.key',
      '--tls-sni-cert-key=/b.crt,/b.key:b,*.b',
      '--service-account-key-file=/etc/kubernetes/static-pod-resources/configmaps/sa-token-signing-certs/1.pub',
      '--service-account-key-file=/etc/kubernetes/static-pod-resources/configmaps/bound-sa-token-signing-certs/2.pub',
      '--authorization-mode=Node',
      '--client-ca-file=/etc/kubernetes/static-pod-certs/configmaps/client-ca/ca-bundle.crt',
    ]) {
      assert.ok(flags.includes(flag), flag);
    }
    assert.ok(!flags.some(flag => flag.includes('openshift.io/')));
    assert.ok(!flags.some(flag => flag.startsWith('--cloud-')), 'it has no such flag');
    const unbound = mergeConfigs(config, { servingInfo: { bindAddress: null } });
    assert.throws(() => serverFlags(unbound, () => []), /expected a text in servingInfo.bindAddress/);
    const pod = build({ flavor: 'kubernetes', command: ['kube-apiserver'], flags });
    assert.deepEqual(container('kube-apiserver', pod).command, ['kube-apiserver']);
    assert.deepEqual(pod.spec?.initContainers, []);
  });
});

test('the recovery token is waited for, piece by piece (spec 20, 5.3)', () => {
  const account = { metadata: { uid: 'u' } };
  const token = (annotations: Record<string, string>, data: Record<string, string>) => ({
    metadata: { annotations },
    data,
  });
  const uid = 'kubernetes.io/service-account.uid';
  for (const [problem, owner, secret] of [
    [/serviceaccount .* does not exist/, undefined, undefined],
    [/secret .* does not exist/, account, undefined],
    [/does not name the account's uid/, account, token({}, {})],
    [/names another uid/, account, token({ [uid]: 'old' }, {})],
    [/has no token yet/, account, token({ [uid]: 'u' }, { 'ca.crt': 'x' })],
    [/has no ca.crt yet/, account, token({ [uid]: 'u' }, { token: 'x' })],
  ] as const) {
    assert.match(recoveryTokenProblem(owner, secret) ?? '', problem);
  }
  assert.equal(recoveryTokenProblem(account, token({ [uid]: 'u' }, { token: 'x', 'ca.crt': 'x' })), undefined);
});

for (const [observed, problem] of [
  [null, 'no observedConfig'],
  ['null', 'servingInfo.namedCertificates missing from config'],
  ['[]', 'error parsing config, expected a mapping'],
  ['"a"', 'error parsing config, expected a mapping'],
  [[], 'error parsing config, expected a mapping'],
  [{ servingInfo: null }, 'servingInfo.namedCertificates missing from config'],
] as const) {
  test(`required configuration: ${JSON.stringify(observed)} is not enough (spec 20, 2.2.5)`, () => {
    assert.equal(missingConfig(observed), problem);
  });
}
