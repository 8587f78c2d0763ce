import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Config } from '../resources.ts';
import { valueAt } from '../target-config/merge.ts';
import type { ObserveInputs } from './observation.ts';
import { observeAll } from './observe.ts';

const NOTHING: ObserveInputs = { userSecret: () => undefined };
const observe = (inputs: Partial<ObserveInputs>, previous: Config = {}) =>
  observeAll({ ...NOTHING, ...inputs }, previous);
const rule = (inputs: Partial<ObserveInputs>, name: string) =>
  observe(inputs).copies.find(({ destination }) => destination.name === name)?.source;

test('each observer keeps what it said when it cannot tell any more, and touches nothing of the others', () => {
  const good = observe({
    network: { status: { serviceNetwork: ['172.30.0.0/16'], clusterNetwork: [{ cidr: '10.128.0.0/14' }] } },
    infrastructure: { status: { apiServerURL: 'https://ext:6443' } },
    etcdEndpoints: { data: { a: '10.0.0.2', b: '10.0.0.1' } },
    apiServer: {},
  });
  assert.deepEqual(good.errors, []);
  const lost = observe({ apiServer: {} }, good.config);
  assert.deepEqual(lost.config, good.config);
  assert.equal(lost.errors.length, 3);
});

test('etcd: members in order, IPv6 in brackets, the own one last; junk changes nothing', () => {
  const servers = (data: Record<string, string>) =>
    valueAt(observe({ etcdEndpoints: { data } }).config, ['apiServerArguments', 'etcd-servers']);
  assert.deepEqual(servers({ b: '10.0.0.2', a: 'fd00::1', c: '10.0.0.2' }), [
    'https://10.0.0.2:2379',
    'https://[fd00::1]:2379',
    'https://localhost:2379',
  ]);
  assert.equal(servers({}), undefined);
  assert.match(observe({ etcdEndpoints: { data: { a: 'x y' } } }).errors.join(), /expected IP addresses.*"x y"/);
});

test('a service network that is IPv6 only has the server listen there', () => {
  const serving = (serviceNetwork: string[]) => observe({ network: { status: { serviceNetwork } } }).config.servingInfo;
  assert.deepEqual(serving(['fd02::/112']), { bindAddress: '[::]:6443', bindNetwork: 'tcp6' });
  assert.deepEqual(serving(['172.30.0.0/16', 'fd02::/112']), { bindAddress: '0.0.0.0:6443', bindNetwork: 'tcp4' });
  assert.match(observe({ network: { status: { serviceNetwork: ['junk'] } } }).errors.join(), /found "junk"/);
});

test('CORS: the own machine always, further origins in order and once; told when they change', () => {
  const own = ['//127\\.0\\.0\\.1(:|$)', '//localhost(:|$)'];
  const origins = (additional: string[] | null) => {
    const { config, events } = observe({ apiServer: { spec: { additionalCORSAllowedOrigins: additional } } });
    return { origins: config.corsAllowedOrigins, told: events.map(({ message }) => message) };
  };
  assert.deepEqual(observe({}).config.corsAllowedOrigins, own);
  assert.deepEqual(origins(null), { origins: own, told: [] });
  const [first, last] = own as [string, string];
  assert.deepEqual(origins(['//x.*.now(:|$)', '//a.it(:|$)', last]), {
    origins: [first, '//a.it(:|$)', last, '//x.*.now(:|$)'],
    told: [
      'corsAllowedOrigins changed to ["//127\\\\.0\\\\.0\\\\.1(:|$)" "//a.it(:|$)" "//localhost(:|$)" "//x.*.now(:|$)"]',
    ],
  });
});

describe('the webhook authenticator', () => {
  const kubeconfig = {
    clusters: [{ name: 'c', cluster: { server: 'https://x' } }],
    users: [{ name: 'u', user: { token: 'secret-token' } }],
    contexts: [{ name: 'k', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'k',
  };
  const withConfig = (text: string): Partial<ObserveInputs> => ({
    authentication: { spec: { webhookTokenAuthenticator: { kubeConfig: { name: 'hook' } } } },
    userSecret: () => ({ data: { kubeConfig: Buffer.from(text).toString('base64') } }),
  });
  const path = ['apiServerArguments', 'authentication-token-webhook-config-file'];

  test('a kubeconfig that stands for itself is used and copied', () => {
    const inputs = withConfig(JSON.stringify(kubeconfig));
    assert.deepEqual(valueAt(observe(inputs).config, path), [
      '/etc/kubernetes/static-pod-resources/secrets/webhook-authenticator/kubeConfig',
    ]);
    assert.deepEqual(rule(inputs, 'webhook-authenticator'), { namespace: 'openshift-config', name: 'hook' });
  });

  for (const [what, change] of [
    ['two clusters', { clusters: [...kubeconfig.clusters, ...kubeconfig.clusters] }],
    ['no server', { clusters: [{ name: 'c', cluster: {} }] }],
    ['a CA in a file', { clusters: [{ name: 'c', cluster: { server: 'x', 'certificate-authority': '/f' } }] }],
    ['a token in a file', { users: [{ name: 'u', user: { token: 't', tokenFile: '/f' } }] }],
    ['half a credential', { users: [{ name: 'u', user: { username: 'me' } }] }],
    ['another context', { 'current-context': 'other' }],
    ['a context for nobody', { contexts: [{ name: 'k', context: { cluster: 'c', user: 'nobody' } }] }],
  ] as [string, object][]) {
    test(`${what}: refused, nothing changes, no secret is told`, () => {
      const inputs = withConfig(JSON.stringify({ ...kubeconfig, ...change }));
      const { errors, copies, config } = observe(inputs);
      assert.ok(
        errors.some(error => error.startsWith('secret openshift-config/hook: ')),
        errors.join(),
      );
      assert.ok(!errors.join().includes('secret-token'));
      assert.equal(valueAt(config, path), undefined);
      assert.ok(!copies.some(({ destination }) => destination.name === 'webhook-authenticator'));
    });
  }

  test('text that is not YAML is not quoted', () => {
    const { errors } = observe(withConfig('token: secret-token\n\t- : ['));
    assert.ok(!errors.join().includes('secret-token'), errors.join());
  });
});

test('the user comes before the built-in OAuth server; without both the copy goes away', () => {
  const status = { integratedOAuthMetadata: { name: 'built-in' } };
  const of = (authentication: ObserveInputs['authentication']) => rule({ authentication }, 'oauth-metadata');
  assert.deepEqual(of({ spec: { oauthMetadata: { name: 'own' } }, status }), {
    namespace: 'openshift-config',
    name: 'own',
  });
  assert.deepEqual(of({ spec: {}, status }), { namespace: 'openshift-config-managed', name: 'built-in' });
  assert.equal(of({ spec: { type: 'None' }, status }), undefined);
});

test('issuers: the active one first; a new one is told', () => {
  const operator = {
    status: {
      serviceAccountIssuers: [{ name: 'https://old', expirationTime: '2026-01-02T00:00:00Z' }, { name: 'https://new' }],
    },
  };
  const { config, events } = observe({ operator });
  assert.deepEqual(valueAt(config, ['apiServerArguments', 'service-account-issuer']), ['https://new', 'https://old']);
  assert.deepEqual(valueAt(config, ['apiServerArguments', 'api-audiences']), ['https://new', 'https://old']);
  assert.equal(valueAt(config, ['apiServerArguments', 'service-account-jwks-uri']), undefined);
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ['ObserveServiceAccountIssuer'],
  );
  const again = observe({ operator }, config);
  assert.deepEqual(again.events, []);
});

test('two entries for one name are refused', () => {
  const entry = { names: ['same'], servingCertificate: { name: 's' } };
  const { errors, copies } = observe({
    userSecret: () => ({}),
    apiServer: { spec: { servingCerts: { namedCertificates: [entry, entry] } } },
  });
  assert.match(errors.join(), /the name "same" is in entries 0 and 1/);
  assert.ok(!copies.some(({ destination }) => destination.name.startsWith('user-serving')));
});

test('one name twice in the same entry is refused too; what may still come is no event (spec 20, 8.3)', () => {
  const named = (namedCertificates: object[], hasSecret = true) =>
    observe({
      userSecret: () => (hasSecret ? {} : undefined),
      apiServer: { spec: { servingCerts: { namedCertificates } } },
    });
  const twice = named([{ names: ['same', 'same'], servingCertificate: { name: 's' } }]);
  assert.match(twice.errors.join(), /the name "same" is in entries 0 and 0/);
  const missing = named([{ servingCertificate: { name: 's' } }], false);
  assert.match(missing.errors.join(), /secret openshift-config\/s not found/);
  const reasons = ({ events }: typeof twice) =>
    events.map(({ reason }) => reason).filter(reason => /NamedCert/.test(reason));
  assert.deepEqual([reasons(twice), reasons(missing)], [[], []]);
  assert.deepEqual(reasons(named([{ names: ['a'] }])), ['ObserveNamedCertificatesFailed']);
});

describe('the configuration of the cloud provider (spec 20, 2.4)', () => {
  const file = (inputs: Partial<ObserveInputs>) =>
    valueAt(observe(inputs).config, ['apiServerArguments', 'cloud-config']);
  const on = (platform: string, spec: object = {}) => ({
    infrastructure: { spec, status: { platform, platformStatus: { type: platform } } },
  });
  const own = { cloudConfig: { name: 'cloud-provider-config', key: 'config' } };
  const directory = '/etc/kubernetes/static-pod-resources/configmaps/cloud-config';

  for (const platform of ['AWS', 'Azure', 'GCP', 'VSphere']) {
    test(`${platform}: copied and given to the server; which provider it is is not said`, () => {
      assert.deepEqual(file(on(platform, own)), [`${directory}/config`]);
      assert.deepEqual(rule(on(platform, own), 'cloud-config'), {
        namespace: 'openshift-config',
        name: 'cloud-provider-config',
      });
      const prepared = { ...on(platform, own), cloudConfig: {} };
      assert.deepEqual(file(prepared), [`${directory}/cloud.conf`]);
      assert.deepEqual(rule(prepared, 'cloud-config'), {
        namespace: 'openshift-config-managed',
        name: 'kube-cloud-config',
      });
      assert.equal(valueAt(observe(on(platform, own)).config, ['apiServerArguments', 'cloud-provider']), undefined);
    });
  }

  test('elsewhere the copy goes away; without an Infrastructure it is left alone', () => {
    const copies = (inputs: Partial<ObserveInputs>) =>
      observe(inputs).copies.filter(({ destination }) => destination.name === 'cloud-config');
    for (const inputs of [on('OpenStack', own), on('AWS'), on('None')]) {
      assert.equal(file(inputs), undefined);
      assert.deepEqual(
        copies(inputs).map(({ source }) => source),
        [undefined],
      );
    }
    assert.deepEqual(copies({ cloudConfig: {} }), []);
  });
});

test('an observer that fails keeps what it said and is told; the others go on', () => {
  const broken = { servingCerts: { namedCertificates: [null] }, clientCA: { name: 'mine' } } as never;
  const previous = { servingInfo: { namedCertificates: ['before'] } };
  const { config, errors, copies } = observe({ apiServer: { spec: broken } }, previous);
  assert.deepEqual(valueAt(config, ['servingInfo', 'namedCertificates']), ['before']);
  assert.ok(errors.some(error => error.includes('servingCertificate.name cannot be empty')));
  assert.ok(copies.some(({ source }) => source?.name === 'mine'));

  const failing = {
    paths: [['a', 'b']],
    observe(): never {
      throw new TypeError('what is this?');
    },
  };
  const alone = observeAll(NOTHING, { a: { b: 1 }, c: 2 }, [failing]);
  assert.deepEqual([alone.config, alone.errors], [{ a: { b: 1 } }, ['observing a.b: what is this?']]);
});

test('null counts as absent, as it does in Go', () => {
  const entry = { names: null, servingCertificate: { name: 's' } };
  const { errors, config } = observe({
    userSecret: () => ({}),
    apiServer: { spec: { servingCerts: { namedCertificates: [entry] } } },
    authentication: { spec: null, status: null } as never,
    proxy: { status: { httpProxy: null } } as never,
  });
  assert.deepEqual(
    errors.filter(error => /observing|named|OAuth/.test(error)),
    [],
  );
  const named = valueAt(config, ['servingInfo', 'namedCertificates']) as object[];
  assert.deepEqual(Object.keys(named[5] ?? {}), ['certFile', 'keyFile']);
  assert.equal(config.targetconfigcontroller, undefined);
});

test('an issuer is named once, also when the default one is both active and still trusted', () => {
  const issuers = [{ name: 'https://kubernetes.default.svc', expirationTime: '2026-01-02T00:00:00Z' }];
  const { config } = observe({
    operator: { status: { serviceAccountIssuers: issuers } },
    infrastructure: { status: { apiServerURL: 'https://ext:6443' } },
  });
  assert.deepEqual(valueAt(config, ['apiServerArguments', 'service-account-issuer']), [
    'https://kubernetes.default.svc',
  ]);
});

test('networks of pods that are not told lift no restriction', () => {
  const path = ['admission', 'pluginConfig', 'network.openshift.io/RestrictedEndpointsAdmission', 'configuration'];
  const status = { serviceNetwork: ['172.30.0.0/16'], clusterNetwork: [{ cidr: '10.128.0.0/14' }] };
  const before = observe({ network: { status } }).config;
  const after = observe({ network: { status: { ...status, clusterNetwork: [] } } }, before);
  assert.deepEqual(valueAt(after.config, path), valueAt(before, path));
  assert.match(after.errors.join(), /has no status.clusterNetwork/);
  assert.deepEqual(valueAt(observe({}).config, path), {
    apiVersion: 'network.openshift.io/v1',
    kind: 'RestrictedEndpointsAdmissionConfig',
  });
});
