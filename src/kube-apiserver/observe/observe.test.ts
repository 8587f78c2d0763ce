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
