import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { CURRENT_CONFIG, GENERATED_BY_VERSION, ROLE_LABEL } from '../machine-config-api/names.ts';
import { previewRollout } from './preview.ts';
import { RenderError } from './render/merge.ts';
import { customPool, fileConfig } from './testing.ts';

describe('what would happen to the nodes of a pool', () => {
  const controllerConfig = { metadata: { annotations: { [GENERATED_BY_VERSION]: 'v1' } }, spec: {} };
  const base = fileConfig('00-base', 'worker', '/etc/base', 'base');
  const plain = { pool: customPool('infra', '50%'), pools: [customPool('infra')], nodes: [], configs: [base] };
  const { rendered } = previewRollout({ ...plain, controllerConfig });
  const pool = { ...plain.pool, spec: { ...plain.pool.spec, configuration: { name: rendered.metadata.name } } };
  const node = (name: string, config: string): Node => ({
    metadata: { name, labels: { 'node-role.kubernetes.io/infra': '' }, annotations: { [CURRENT_CONFIG]: config } },
  });
  const input = {
    pool,
    pools: [pool],
    configs: [base, rendered],
    controllerConfig,
    nodes: [
      ...['a', 'b', 'c', 'd'].map(name => node(name, rendered.metadata.name)),
      node('lost', 'rendered-infra-gone'),
      { metadata: { name: 'other', labels: { 'node-role.kubernetes.io/worker': '' } } },
    ],
  };
  const actions = (preview: ReturnType<typeof previewRollout>) =>
    preview.nodes.map(({ node: name, effect }) => [name, effect?.action]);

  test('without a candidate nothing does, where all is rolled out', () => {
    const preview = previewRollout(input);
    assert.equal(preview.isNew, false);
    assert.equal(preview.atOnce, 2);
    assert.deepEqual(actions(preview), [
      ['a', 'nothing'],
      ['b', 'nothing'],
      ['c', 'nothing'],
      ['d', 'nothing'],
      ['lost', undefined],
    ]);
  });

  test('a file reboots with a drain, a pull secret is only written', () => {
    const reboot = previewRollout({ ...input, candidate: fileConfig('99-mine', 'infra', '/etc/mine', 'text') });
    assert.equal(reboot.isNew, true);
    assert.deepEqual(reboot.nodes[0]?.effect, { action: 'reboot', drain: true, paths: ['/etc/mine'], reasons: [] });
    const written = previewRollout({
      ...input,
      candidate: fileConfig('99-mine', 'infra', '/var/lib/kubelet/config.json', '{}'),
    });
    assert.deepEqual([written.nodes[0]?.effect?.action, written.nodes[0]?.effect?.drain], ['write', false]);
  });

  test('a candidate of a known name takes its place, one of another role changes nothing', () => {
    const replaced = previewRollout({ ...input, candidate: fileConfig('00-base', 'worker', '/etc/base', 'changed') });
    assert.deepEqual(replaced.nodes[0]?.effect?.paths, ['/etc/base']);
    assert.equal(previewRollout({ ...input, candidate: fileConfig('99-x', 'master', '/etc/x', 'text') }).isNew, false);
  });

  test('what could not be rendered is refused as the controller would', () => {
    const candidate = { metadata: { name: '99-x', labels: { [ROLE_LABEL]: 'infra' } }, spec: { fips: true } };
    assert.throws(() => previewRollout({ ...input, candidate }), RenderError);
  });
});
