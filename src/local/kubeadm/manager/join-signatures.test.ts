import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { startEngine } from '../../../api/api.ts';
import { getIfPresent } from '../../../kube/get.ts';
import { CONFIG_MAPS, NAMESPACES, SECRETS } from '../../../kube/resource.ts';
import { CLUSTER_INFO } from '../../../kubeadm/names.ts';
import { joinTokensIn, nextEnd, signClusterInfo } from './join-signatures.ts';

const NOW = new Date('2026-03-01T00:00:00Z');

function token(id: string, fields: Record<string, string>): Secret {
  const all = { 'token-id': id, 'token-secret': '0123456789abcdef', 'usage-bootstrap-signing': 'true', ...fields };
  const data = Object.fromEntries(
    Object.entries(all).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  );
  return {
    metadata: { namespace: 'kube-system', name: `bootstrap-token-${id}` },
    type: 'bootstrap.kubernetes.io/token',
    data,
  };
}

test('each token signs the text as it is, and one that has ended goes with its signature', async t => {
  const { kube, close } = await startEngine();
  t.after(close);
  for (const name of ['kube-system', CLUSTER_INFO.namespace])
    await kube.create(NAMESPACES, { metadata: { name } }).catch(() => undefined);
  const secrets = [
    token('aaaaaa', { expiration: '2026-03-02T00:00:00Z' }),
    token('bbbbbb', { expiration: '2026-02-28T00:00:00Z' }),
    token('cccccc', { 'usage-bootstrap-signing': 'false' }),
  ];
  for (const secret of secrets) await kube.create(SECRETS, secret);
  const data = { kubeconfig: 'text', 'jws-kubeconfig-bbbbbb': 'of before' };
  const info = await kube.create(CONFIG_MAPS, { metadata: { ...CLUSTER_INFO }, data });
  const tokens = joinTokensIn(secrets);
  assert.deepEqual(nextEnd(tokens, NOW), new Date('2026-03-02T00:00:00Z'));
  await signClusterInfo(kube, info, tokens, NOW);
  const signed = await kube.get(CONFIG_MAPS, CLUSTER_INFO);
  assert.deepEqual(Object.keys(signed.data ?? {}).toSorted(), ['jws-kubeconfig-aaaaaa', 'kubeconfig']);
  const [header = '', payload, signature] = (signed.data?.['jws-kubeconfig-aaaaaa'] ?? '').split('.');
  assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: 'HS256', kid: 'aaaaaa' });
  assert.equal(payload, '', 'the text is not repeated');
  const over = `${header}.${Buffer.from('text').toString('base64url')}`;
  const expected = createHmac('sha256', '0123456789abcdef').update(over).digest('base64url');
  assert.equal(signature, expected);
  const ended = { namespace: 'kube-system', name: 'bootstrap-token-bbbbbb' };
  assert.equal(await getIfPresent(kube, SECRETS, ended), undefined);
});
