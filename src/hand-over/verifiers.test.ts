import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KUBE_APISERVER_CHAINS } from '../kube-apiserver/chains.ts';
import { kubeApiserverTrust } from '../kube-apiserver/trust.ts';
import type { Edge, Side, TrustGraph } from '../trust/graph.ts';
import { configMap, secret } from '../trust/object.ts';
import { type Means, verifiersOf } from './verifiers.ts';

const LEAF = secret('ns', 'leaf');
const BUNDLE = configMap('ns', 'bundle');

function graphOf(edges: readonly Edge[], rest: Partial<TrustGraph> = {}): TrustGraph {
  return { deliveries: [], flows: [], edges, ...rest };
}

function edge(client: Partial<Side>, server: Partial<Side>): Edge {
  return {
    name: 'an edge',
    client: { process: 'client', nodes: 'all', ...client },
    server: { process: 'server', nodes: 'control-plane', endpoint: { url: 'https://<host>:1' }, ...server },
  };
}

const shows = { presents: { object: LEAF } };
const checks = { verifiesWith: { object: BUNDLE } };

/** `<process> on <nodes>: <means>`. */
function said(graph: TrustGraph, ...leaves: (typeof LEAF)[]): string[] {
  return verifiersOf(graph, leaves.length > 0 ? leaves : [LEAF])
    .map(({ process, nodes, means }) => `${process} on ${nodes}: ${textOf(means)}`)
    .toSorted();
}

function textOf(means: Means): string {
  switch (means.kind) {
    case 'ask':
      return 'asked';
    case 'revision':
      return `revision with ${means.bundle.name}`;
    case 'agent':
      return `agent, ${means.files?.map(file => file.split('/').at(-1)).join() ?? 'process'}`;
    case 'pod':
      return `pod with ${means.bundle.name}`;
    case 'root-ca':
      return `reads ${means.bundle.name} again within ${means.withinMs / 1000} s`;
    case 'nobody':
      return `nobody: ${means.why}`;
  }
}

describe('who verifies (spec 90, section 1)', () => {
  test('a server that checks clients which show the leaf is asked', () => {
    assert.deepEqual(said(graphOf([edge(shows, checks)])), ['server on control-plane: asked']);
  });

  test('nobody verifies what nobody shows, or where nobody checks', () => {
    assert.deepEqual(said(graphOf([edge({ presents: 'token' }, checks)])), []);
    assert.deepEqual(said(graphOf([edge(shows, {})])), []);
    assert.deepEqual(said(graphOf([edge({ presents: { object: secret('ns', 'other') } }, checks)])), []);
  });

  test('the copies of a leaf and what carries it inside count as the leaf; combined and trusted objects do not', () => {
    const copy = secret('other', 'copy');
    const kubeconfig = secret('other', 'kubeconfig');
    const flows = [
      { from: LEAF, to: copy, kind: 'copied', by: 'x' },
      { from: copy, to: kubeconfig, kind: 'embedded', by: 'x' },
    ] as const;
    const graph = graphOf([edge({ presents: { object: kubeconfig } }, checks)], { flows });
    assert.deepEqual(said(graph), ['server on control-plane: asked']);
    const trusted = graphOf([edge({ presents: { object: copy } }, checks)], {
      flows: [{ from: LEAF, to: copy, kind: 'trusted', by: 'x' }],
    });
    assert.deepEqual(said(trusted), []);
  });

  test('one server that many show the leaf to is one verifier', () => {
    const graph = graphOf([edge({ ...shows, process: 'a' }, checks), edge({ ...shows, process: 'b' }, checks)]);
    assert.deepEqual(said(graph), ['server on control-plane: asked']);
  });

  test('a client that checks servers is known by how its bundle comes to it', () => {
    const client = (carrier: 'revision' | 'sync' | 'node-agent') =>
      graphOf([edge(checks, shows)], {
        deliveries: [
          {
            object: BUNDLE,
            carrier,
            nodes: 'all',
            hostDirectory: '/host',
            directory: '/in',
            files: ['ca.crt'],
            optional: false,
            uses: [{ process: 'client', setting: '--ca', takes: 'watch' }],
          },
        ],
      });
    assert.deepEqual(said(client('revision')), ['client on all: revision with bundle']);
    assert.deepEqual(said(client('sync')), ['client on all: agent, ca.crt']);
    assert.deepEqual(said(client('node-agent')), ['client on all: agent, ca.crt']);
    const elsewhere = (seenBy?: 'agent' | 'pod') => {
      const held = { file: 'f', takes: 'restart', by: 'somebody', ...(seenBy && { seenBy }) } as const;
      return graphOf([edge({ verifiesWith: { object: BUNDLE, elsewhere: held } }, shows)]);
    };
    assert.deepEqual(said(elsewhere('agent')), ['client on all: agent, process']);
    assert.deepEqual(said(elsewhere('pod')), ['client on all: pod with bundle']);
    assert.deepEqual(said(elsewhere()), ['client on all: nobody: somebody brings it its CAs']);
    assert.deepEqual(said(graphOf([edge(checks, shows)])), ['client on all: nobody: nobody delivers its CAs']);
  });

  test('whoever may be anywhere is named and not counted', () => {
    assert.deepEqual(said(graphOf([edge({ ...checks, nodes: 'anywhere' }, shows)])), [
      'client on anywhere: nobody: it may be anywhere',
    ]);
    assert.deepEqual(said(graphOf([edge(shows, { ...checks, nodes: 'anywhere' })])), [
      'server on anywhere: nobody: where it listens is not known',
    ]);
  });

  test('processes that begin with the same copy in a revision are one; those with files of their own are not', () => {
    const uses = ['a', 'b'].map(process => ({ process, setting: '', takes: 'watch' as const }));
    const place = { nodes: 'all', hostDirectory: '/h', directory: '/d', optional: false, uses } as const;
    const graph = (carrier: 'revision' | 'sync') =>
      graphOf([edge({ ...checks, process: 'a' }, shows), edge({ ...checks, process: 'b' }, shows)], {
        deliveries: [{ object: BUNDLE, carrier, files: ['ca.crt'], ...place }],
      });
    assert.deepEqual(said(graph('revision')), ['a, b on all: revision with bundle']);
    assert.deepEqual(said(graph('sync')), ['a on all: agent, ca.crt', 'b on all: agent, ca.crt']);
  });
});

describe('every signer of kube-apiserver has somebody who verifies', () => {
  const expected: Record<string, string[]> = {
    'aggregator-client-signer': [
      'aggregated API server on anywhere: nobody: where it listens is not known',
      'kube-apiserver on control-plane: asked',
    ],
    'kube-apiserver-to-kubelet-signer': ['kubelet on all: asked'],
    'localhost-serving-signer': [
      'check-endpoints, node administrator on control-plane: revision with kube-apiserver-server-ca',
      'node administrator on control-plane: agent, localhost.kubeconfig',
    ],
    'service-network-serving-signer': ['pod on all: reads kube-apiserver-server-ca again within 390 s'],
    'loadbalancer-serving-signer': [
      'kube-controller-manager on control-plane: pod with kube-apiserver-server-ca',
      'kube-scheduler on control-plane: pod with kube-apiserver-server-ca',
      'kubectl on anywhere: nobody: it may be anywhere',
      'kubelet on all: agent, process',
      'node administrator on control-plane: agent, lb-ext.kubeconfig,lb-int.kubeconfig',
    ],
    'localhost-recovery-serving-signer': [
      'cert-syncer, cert-regeneration-controller, watch-termination on control-plane: revision with kube-apiserver-server-ca',
      'node administrator on control-plane: agent, localhost-recovery.kubeconfig',
    ],
    'kube-control-plane-signer': ['kube-apiserver on control-plane: asked'],
    'node-system-admin-signer': ['kube-apiserver on control-plane: asked'],
  };
  const families = Map.groupBy(KUBE_APISERVER_CHAINS, ({ signer }) => signer.name);

  test('the table is whole', () => {
    assert.deepEqual([...families.keys()].toSorted(), Object.keys(expected).toSorted());
  });

  for (const [signer, chains] of families) {
    test(signer, () => {
      const leaves = chains.map(({ target }) => secret(target.namespace, target.name));
      assert.deepEqual(said(kubeApiserverTrust(), ...leaves), expected[signer]);
    });
  }
});
