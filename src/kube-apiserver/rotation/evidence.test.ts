import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import type { RotationUnit } from '../../certrotation/config.ts';
import { withCertificate } from '../../certrotation/secret.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { MemoryKube } from '../../kube/memory.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { issueSigner } from '../../pki/issue.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { NOW } from '../testing.ts';
import { kubeApiserverTrust } from '../trust.ts';
import { kubeApiserverEvidence } from './evidence.ts';
import { hostnameSources } from './follow-hostnames.ts';
import { rotationUnits } from './units.ts';

test('names that others have, or may have had, are told from those that nobody else can have', async () => {
  const ca = async (commonName: string, seed: string) =>
    issueSigner({ commonName, keys: seededKeys(seed), now: NOW, lifetimeMs: days(1), algorithm: 'P-256' });
  const [own, first, second] = await Promise.all([ca('ns_signer@1', 'a'), ca('mine', 'b'), ca('mine', 'c')]);
  const [unit] = rotationUnits({ dayMs: days(1), hostnames: hostnameSources() }) as [RotationUnit, ...RotationUnit[]];
  const answer = (pair: CertificateAndKey, bundle: readonly CertificateAndKey[], inSecret?: CertificateAndKey) =>
    kubeApiserverEvidence({
      kube: new MemoryKube(),
      clock: new VirtualClock(NOW),
      units: [unit],
      graph: () => kubeApiserverTrust(),
      nodes: () => [],
      nodeStatuses: () => [],
      configMap: () => ({ data: { [BUNDLE_KEY]: bundle.map(({ chain }) => encodeCertificates(chain)).join('') } }),
      secret: ({ name }) =>
        name === `${unit.signer.name}-next` && inSecret !== undefined
          ? withCertificate({ metadata: { name } }, inSecret, 'signer', days(1))
          : undefined,
    }).namesake?.(pair.chain[0] as Certificate);
  assert.equal(answer(own, [own, first]), undefined);
  // One that has left the bundle may still be loaded.
  assert.equal(answer(second, [second]), 'no key');
  assert.equal(answer(second, [first, second], first), 'no key');
  const found = answer(second, [first, second], second);
  assert.ok(typeof found === 'object');
  assert.ok(found.chain[0]?.der.equals(second.chain[0]?.der as Buffer));
});

test('kubelets are asked where they say they listen; 0 is what a server writes where nobody has said', () => {
  const graph = kubeApiserverTrust();
  const { whereIs } = kubeApiserverEvidence({
    kube: new MemoryKube(),
    clock: new VirtualClock(NOW),
    units: [],
    graph: () => graph,
    nodes: () => [],
    nodeStatuses: () => [],
    configMap: () => undefined,
    secret: () => undefined,
  });
  const node = (port?: number): Node => ({
    status: {
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      ...(port === undefined ? {} : { daemonEndpoints: { kubeletEndpoint: { Port: port } } }),
    },
  });
  const edge = (name: string) => graph.edges.find(found => found.name === name)!;
  const kubelets = edge('kube-apiserver to kubelets');
  assert.deepEqual(
    [undefined, 0, 10_999].map(port => whereIs(kubelets, node(port))?.port),
    [10_250, 10_250, 10_999],
  );
  assert.equal(whereIs(edge('check-endpoints to kube-apiserver'), node(0))?.port, 6443);
  assert.equal(whereIs(kubelets, {}), undefined);
});
