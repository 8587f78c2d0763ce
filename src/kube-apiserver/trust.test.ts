import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { effectOfChange, verdictOf } from '../trust/effect.ts';
import { type Flow, type Holding, placeOf, type Side } from '../trust/graph.ts';
import { configMap, isSameObject, type ObjectRef, objectText, secret } from '../trust/object.ts';
import { servedCertificate } from '../trust/serving.ts';
import { KUBE_APISERVER_CHAINS } from './chains.ts';
import { FIXED_COPIES } from './copies.ts';
import { CONFIG_NAMESPACE, MANAGED_NAMESPACE, OPERAND_NAMESPACE, OPERATOR_NAMESPACE } from './namespaces.ts';
import { kubeApiserverTrust, servedCertificates } from './trust.ts';

const graph = kubeApiserverTrust();
const holdings = (side: Side): Holding[] =>
  [side.presents, side.verifiesWith].filter((held): held is Holding => typeof held === 'object' && 'object' in held);

describe('every edge', () => {
  for (const edge of graph.edges) {
    test(`${edge.name}: both sides have what they need in a known place`, () => {
      for (const side of [edge.client, edge.server]) {
        for (const holding of holdings(side)) {
          const isForeignProcess = side.process === 'front proxy';
          const place = placeOf(graph, side, holding);
          assert.ok(isForeignProcess || place, `${side.process} has ${objectText(holding.object)} nowhere`);
        }
      }
    });

    test(`${edge.name}: what one side shows is signed by what the other side checks with`, () => {
      for (const [shown, checked] of [
        [edge.client.presents, edge.server.verifiesWith],
        [edge.server.presents, edge.client.verifiesWith],
      ] as const) {
        if (shown === undefined || shown === 'token' || checked === undefined) continue;
        const origin = 'issuerIn' in shown ? shown.issuerIn : signerOf(shown.object);
        assert.ok(origin, `nobody signs ${objectText('object' in shown ? shown.object : shown.issuerIn)}`);
        assert.ok(
          reaches(origin, checked.object),
          `${objectText(origin)} does not get into ${objectText(checked.object)}`,
        );
      }
    });
  }

  test('each of the twelve targets is shown on at least one of them', () => {
    const shown = graph.edges.flatMap(({ client, server }) => [...holdings(client), ...holdings(server)]);
    for (const { target, controller } of KUBE_APISERVER_CHAINS) {
      const own = secret(target.namespace, target.name);
      const carriers = [own, ...graph.flows.filter(({ from }) => isSameObject(from, own)).map(({ to }) => to)];
      assert.ok(
        shown.some(({ object }) => carriers.some(carrier => isSameObject(carrier, object))),
        controller,
      );
    }
  });
});

describe('reload or restart (spec 20, 3.4)', () => {
  const operator = (name: string) => secret(OPERATOR_NAMESPACE, name);
  const operand = (name: string) => secret(OPERAND_NAMESPACE, name);
  const inOperand = (object: ObjectRef) =>
    effectOfChange(graph, object).filter(({ delivery }) => delivery.object.namespace === OPERAND_NAMESPACE);
  const summary = (object: ObjectRef) =>
    inOperand(object).map(({ kind, delivery }) => `${delivery.object.name} ${kind}`);

  for (const name of [
    'aggregator-client',
    'kubelet-client',
    'localhost-serving-cert-certkey',
    'service-network-serving-certkey',
    'external-loadbalancer-serving-certkey',
    'internal-loadbalancer-serving-certkey',
    'check-endpoints-client-cert-key',
  ]) {
    test(`target ${name}: hot`, () => assert.deepEqual(summary(operand(name)), [`${name} reload`]));
  }

  for (const [what, object, effects] of [
    [
      'target 10',
      operand('control-plane-node-admin-client-cert-key'),
      ['control-plane-node-admin-client-cert-key file-only'],
    ],
    ['target 12', operator('node-system-admin-client'), ['node-kubeconfigs file-only']],
    ['target 7', operand('localhost-recovery-serving-certkey'), ['localhost-recovery-serving-certkey restart']],
    ['target 8', secret(MANAGED_NAMESPACE, 'kube-controller-manager-client-cert-key'), []],
    ['target 9', secret(MANAGED_NAMESPACE, 'kube-scheduler-client-cert-key'), []],
    ['signer 1', operator('aggregator-client-signer'), ['aggregator-client-ca reload']],
    ['signer 2', operator('kube-apiserver-to-kubelet-signer'), ['client-ca reload']],
    ['signer 8 to 11', operator('kube-control-plane-signer'), ['client-ca reload']],
    ['signer 12', operator('node-system-admin-signer'), ['client-ca reload']],
    ...['localhost', 'service-network', 'loadbalancer', 'localhost-recovery'].map(
      name =>
        [
          `signer of ${name}`,
          operator(`${name}-serving-signer`),
          ['kube-apiserver-server-ca restart', 'node-kubeconfigs file-only'],
        ] as [string, ObjectRef, string[]],
    ),
    [
      'the signer of kubelets',
      configMap(MANAGED_NAMESPACE, 'csr-controller-ca'),
      ['client-ca reload', 'kubelet-serving-ca restart'],
    ],
    ['the etcd client', secret(CONFIG_NAMESPACE, 'etcd-client'), ['etcd-client restart']],
    ['the CA of etcd', configMap(CONFIG_NAMESPACE, 'etcd-serving-ca'), ['etcd-serving-ca restart']],
    ['the recovery token', operand('localhost-recovery-client-token'), ['localhost-recovery-client-token restart']],
    [
      'the next signing key',
      operator('next-bound-service-account-signing-key'),
      ['bound-sa-token-signing-certs restart', 'bound-service-account-signing-key file-only'],
    ],
  ] as [string, ObjectRef, string[]][]) {
    test(`${what}: ${effects.join(', ') || 'nothing here'}`, () => {
      assert.deepEqual(summary(object).sort(), effects.sort());
    });
  }

  test('the kubelet CA of every node follows the client CA without a restart', () => {
    const effects = effectOfChange(graph, operator('kube-apiserver-to-kubelet-signer'));
    const kubelet = effects.find(({ delivery }) => delivery.carrier === 'node-agent');
    assert.deepEqual(
      [kubelet?.kind, kubelet?.delivery.nodes, kubelet?.delivery.hostDirectory, kubelet?.delivery.files],
      ['reload', 'all', '/etc/kubernetes', ['kubelet-ca.crt']],
    );
    assert.deepEqual(
      kubelet?.path.map(({ name }) => name),
      [
        'kube-apiserver-to-kubelet-signer',
        'kube-apiserver-to-kubelet-client-ca',
        'client-ca',
        'kube-apiserver-client-ca',
      ],
    );
    assert.equal(verdictOf(effects), 'reload');
  });

  test('objects of the user are in the graph once the rules that copy them are', () => {
    const own = secret(CONFIG_NAMESPACE, 'mine');
    const destination = { namespace: OPERAND_NAMESPACE, name: 'user-serving-cert-003' };
    const rule = { kind: 'secret', destination, source: { namespace: own.namespace, name: own.name } } as const;
    const [effect] = effectOfChange(kubeApiserverTrust([...FIXED_COPIES, rule]), own);
    assert.equal(effect?.kind, 'reload');
    assert.equal(
      effect?.delivery.hostDirectory,
      '/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/user-serving-cert-003',
    );
    assert.deepEqual(
      effect?.uses.map(({ setting }) => setting),
      ['servingInfo.namedCertificates[8]'],
    );
  });
});

/** The signer of a target, also of one that is embedded in another object. */
function signerOf(object: ObjectRef): ObjectRef | undefined {
  const candidates = [object, ...graph.flows.filter(({ to }) => isSameObject(to, object)).map(({ from }) => from)];
  const chain = KUBE_APISERVER_CHAINS.find(({ target }) =>
    candidates.some(candidate => isSameObject(candidate, secret(target.namespace, target.name))),
  );
  return chain && secret(chain.signer.namespace, chain.signer.name);
}

function reaches(from: ObjectRef, to: ObjectRef, flows: readonly Flow[] = graph.flows): boolean {
  const seen = new Set<string>();
  const walk = (object: ObjectRef): boolean => {
    if (isSameObject(object, to)) return true;
    if (seen.has(objectText(object))) return false;
    seen.add(objectText(object));
    return flows.filter(flow => isSameObject(flow.from, object)).some(flow => walk(flow.to));
  };
  return walk(from);
}

test('names that a user gave outrank the built-in certificates, names inside a certificate do not (spec 20, 8.3.3)', () => {
  const hostnames = {
    'service-network': ['kubernetes'],
    'external-load-balancer': ['api.example'],
    'internal-load-balancer': ['api-int.example'],
  };
  const seen = (isExplicit: boolean) =>
    servedCertificate(servedCertificates(hostnames, [{ names: ['api.example'], isExplicit }]), {
      serverName: 'api.example',
    }).name;
  assert.equal(seen(true), 'user-serving-cert-000');
  assert.equal(seen(false), 'external-loadbalancer-serving-certkey');
});
