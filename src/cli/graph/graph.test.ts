import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { withoutPrivateData } from '../../inventory/public-secret.ts';
import { inventoryOf } from '../../inventory/read.ts';
import { bundleOf, daysFromNow, NOW, secretOf, testClient, testSigner } from '../../inventory/testing.ts';
import { days } from '../../kube/duration.ts';
import { issueIntermediate } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import type { TrustGraph } from '../../trust/graph.ts';
import { configMap, secret } from '../../trust/object.ts';
import { drawDot, drawSvg, drawText } from './draw.ts';
import { around, certificateGraph } from './model.ts';

describe('the trust graph of a cluster', async () => {
  const [signer, other] = [await testSigner('signer'), await testSigner('other')];
  const secrets = [
    secretOf('signer', signer, 'signer'),
    secretOf('other', other, 'signer'),
    secretOf('leaf', await testClient(signer, '<b>&"'), 'target'),
  ];
  const bundles = [bundleOf('ca', signer), bundleOf('other-ca', other)];
  const inventory = inventoryOf(
    { secrets: secrets.map(withoutPrivateData), configMaps: bundles, nodes: [], operands: [], pools: [] },
    NOW,
  );
  const trust: TrustGraph = {
    deliveries: [],
    flows: [],
    edges: [
      {
        name: 'client to server',
        client: { process: 'client', nodes: 'all', presents: { object: secret('ns', 'leaf') } },
        server: {
          process: 'server',
          nodes: 'all',
          verifiesWith: { object: configMap('ns', 'ca') },
          endpoint: { url: 'https://x:1' },
        },
      },
    ],
  };
  const graph = certificateGraph(inventory, trust);

  test('four kinds of nodes and edges', () => {
    assert.deepEqual(graph.edges.map(({ from, kind, to }) => `${from} ${kind} ${to}`).sort(), [
      'configmap/ns/ca verified-with process/server',
      'secret/ns/leaf issued-by secret/ns/signer',
      'secret/ns/leaf presented-by process/client',
      'secret/ns/other contained-in configmap/ns/other-ca',
      'secret/ns/signer contained-in configmap/ns/ca',
    ]);
    assert.equal(graph.nodes.length, 7);
  });

  test('an intermediate is issued by its root, and a root by nobody (spec 70, 5.5)', async () => {
    const now = daysFromNow(-1);
    const intermediate = await issueIntermediate({
      signer,
      commonName: 'ns_intermediate@1',
      lifetimeMs: days(30),
      now,
      keys: systemKeys,
      algorithm: 'P-256',
    });
    const objects = [
      secretOf('signer', signer, 'signer'),
      secretOf('intermediate', intermediate, 'signer'),
      secretOf('below', await testClient(intermediate, 'below'), 'target'),
    ];
    const { edges } = certificateGraph(
      inventoryOf(
        { secrets: objects.map(withoutPrivateData), configMaps: [], nodes: [], operands: [], pools: [] },
        NOW,
      ),
      { deliveries: [], flows: [], edges: [] },
    );
    assert.deepEqual(edges.map(({ from, kind, to }) => `${from} ${kind} ${to}`).sort(), [
      'secret/ns/below issued-by secret/ns/intermediate',
      'secret/ns/intermediate issued-by secret/ns/signer',
    ]);
  });

  test('narrowed down to what is connected with a name', () => {
    const near = around(graph, ['leaf']);
    assert.deepEqual(near?.nodes.map(({ label }) => label).sort(), ['ca', 'client', 'leaf', 'signer']);
    assert.equal(around(graph, ['nobody']), undefined);
  });

  test('as text, for graphviz, and as a picture of well-formed XML', () => {
    assert.match(drawText(graph), /^secret\/ns\/other .*\n {2}trusted in configmap\/ns\/other-ca\n/);
    assert.match(drawText(graph), /signed secret\/ns\/leaf \(until 2026-01-30\)\n {4}shown by: client\n/);
    assert.match(
      drawDot(graph),
      /^digraph trust \{\n[\s\S]*"secret\/ns\/leaf" -> "secret\/ns\/signer" \[label="issued-by"\];[\s\S]*\n\}\n$/,
    );
    const svg = drawSvg(graph);
    const opened = [...svg.matchAll(/<(\w+)[^>]*?(\/?)>/g)].filter(match => match[2] === '').length;
    assert.equal(opened, [...svg.matchAll(/<\/\w+>/g)].length);
    assert.ok(!/<script|href=/.test(svg));
  });
});
