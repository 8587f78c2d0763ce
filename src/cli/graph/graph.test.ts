import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TrustGraph } from '../../trust/graph.ts';
import { configMap, secret } from '../../trust/object.ts';
import { withoutPrivateData } from '../inventory/public-secret.ts';
import { inventoryOf } from '../inventory/read.ts';
import { bundleOf, NOW, secretOf, testClient, testSigner } from '../testing.ts';
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
