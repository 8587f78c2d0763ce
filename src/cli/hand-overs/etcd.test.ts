import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { withoutPrivateData } from '../../inventory/public-secret.ts';
import type { InventoryObjects } from '../../inventory/read.ts';
import { NOW, secretOf, testServing, testSigner } from '../../inventory/testing.ts';
import { days } from '../../kube/duration.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { etcdHandOvers } from './etcd.ts';

test("etcd's signer waits for members whose revision does not have it, and is named as gone on when all have (spec 40, 12)", async () => {
  const [inUse, wanted] = [await testSigner('etcd-signer', 300, 1825), await testSigner('etcd-signer', 1, 1825)];
  const placed = (namespace: string, secret: Secret): Secret => ({
    ...secret,
    metadata: { ...secret.metadata, namespace },
  });
  const bundles = (name: string, ...cas: CertificateAndKey[]): ConfigMap => ({
    metadata: { namespace: 'openshift-etcd', name },
    data: { 'server-ca-bundle.crt': encodeCertificates(cas.flatMap(({ chain }) => chain)) },
  });
  const item = async (leafOf: CertificateAndKey, current: CertificateAndKey, ...cas: CertificateAndKey[]) => {
    const secrets = [
      placed('openshift-etcd', secretOf('etcd-signer', wanted, 'signer')),
      placed('openshift-config', secretOf('etcd-signer', current, 'signer')),
      placed('openshift-etcd', secretOf('etcd-serving-master-0', await testServing(leafOf, ['localhost']), 'target')),
    ];
    const status = { nodeStatuses: [{ nodeName: 'master-0', currentRevision: 7 }] };
    const objects: InventoryObjects = {
      secrets: secrets.map(withoutPrivateData),
      configMaps: [bundles('etcd-all-bundles', inUse, wanted), bundles('etcd-all-bundles-7', ...cas)],
      nodes: [],
      pools: [],
      operands: [{ operand: 'etcd', namespace: 'openshift-etcd', resource: { metadata: {}, status } }],
    };
    const [found] = await etcdHandOvers(objects, days(1), NOW);
    return [found?.phase, found?.write, found?.waitingFor];
  };
  const member = 'etcd on node master-0 at revision 7';
  assert.deepEqual(await item(inUse, inUse, inUse), ['Distributing', 'nothing', [member]]);
  assert.deepEqual(await item(inUse, inUse, inUse, wanted), ['Signing', 'promote', []]);
  assert.deepEqual(await item(inUse, wanted, inUse, wanted), ['Signing', 'nothing', []], 'leaves follow');
  assert.deepEqual(await item(wanted, wanted, inUse, wanted), ['Steady', 'nothing', []]);
});

test('without the resource of its operator nobody knows who verifies', async () => {
  const objects = { secrets: [], configMaps: [], nodes: [], pools: [], operands: [] };
  assert.deepEqual(await etcdHandOvers(objects, days(1), NOW), []);
});
