import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../schema/schema.ts';
import { decodeProtobuf } from './decode.ts';
import { encodeProtobuf } from './encode.ts';
import { WireError } from './wire.ts';

/** Bytes that Go clients sent. */
const SENT = {
  configMap: base64('azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhsKEQoBYRIAGgAiACoAMgA4AEIAEgYKAXgSAXkaACIA'),
  pod: base64(
    'azhzAAoJCgJ2MRIDUG9kEsIBCiAKAXASABoAIgAqADIAOABCAFoGCgFhEgFiWgUKAWMSABKIAQoMCgF2EgcyBQoBcxgAElkKAWMSAWkiAi14IgAqAEIPCg0KA2NwdRIGCgQ1MDBtUigKExIRCgASCQgBEAAaA3dlYhoAIgAQ////////////ARgAIAAoADAAagByAIABAIgBAJABAKIBABoAMgBCAEoAUgBYAGAAaACCAQCKAQCaAQCoAQDCAQAaEwoAGgAiACoAMgBKAFoAcgCIAQAaACIA',
  ),
  deployment: base64(
    'azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50El8KEQoBZBIAGgAiACoAMgA4AEIAEjwIABowChAKABIAGgAiACoAMgA4AEIAEhwaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDAgAEAAYACAAKAA4ABoAIgA=',
  ),
  lease: base64(
    'azhzAAofChZjb29yZGluYXRpb24uazhzLmlvL3YxEgVMZWFzZRIoChEKAWwSABoAIgAqADIAOABCABITCgJtZRAPIgsIgOLPqgYQgJTvOhoAIgA=',
  ),
  eviction: base64('azhzAAoVCglwb2xpY3kvdjESCEV2aWN0aW9uEh0KEgoBZRIAGgFuIgAqADIAOABCABIHCAAqA0FsbBoAIgA='),
  deleteOptions: base64('azhzAAoYCgdhcHBzL3YxEg1EZWxldGVPcHRpb25zEgwiCkJhY2tncm91bmQaACIA'),
};

function base64(text: string): Buffer {
  return Buffer.from(text, 'base64');
}

describe('encodeProtobuf', () => {
  it('writes what it reads, and lists of it', () => {
    for (const bytes of Object.values(SENT)) {
      // Clients write times that they do not know, as null.
      const text = JSON.stringify(decodeProtobuf(bytes), (_, value: unknown) => value ?? undefined);
      const sent = JSON.parse(text) as JsonObject;
      assert.deepEqual(decodeProtobuf(encodeProtobuf(sent) as Buffer), sent);
    }
    const metadata = { resourceVersion: '7', continue: 'x', remainingItemCount: 3 };
    const items = [{ metadata: { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z' }, data: { k: 'v' } }];
    const list = encodeProtobuf({ apiVersion: 'v1', kind: 'ConfigMapList', metadata, items }) as Buffer;
    assert.ok(list.includes('ConfigMapList') && list.includes(Buffer.from([0x12, 1, 0x37, 0x1a, 1, 0x78, 0x20, 3])));
    assert.equal(encodeProtobuf({ apiVersion: 'x.io/v1', kind: 'Good' }), undefined);
  });
});

describe('decodeProtobuf', () => {
  it('reads what Go clients write as they would write it in JSON', () => {
    const metadata = (name: string) => ({ name, creationTimestamp: null });
    assert.deepEqual(decodeProtobuf(SENT.configMap), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: metadata('a'),
      data: { x: 'y' },
    });
    assert.deepEqual(decodeProtobuf(SENT.lease), {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: metadata('l'),
      spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2023-11-14T22:13:20.123456Z' },
    });
    assert.deepEqual(decodeProtobuf(SENT.eviction), {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { ...metadata('e'), namespace: 'n' },
      deleteOptions: { gracePeriodSeconds: 0, dryRun: ['All'] },
    });
    assert.deepEqual(decodeProtobuf(SENT.deleteOptions), {
      apiVersion: 'apps/v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Background',
    });
  });

  it('tells a zero that means something from one that does not', () => {
    const { spec: deployment } = decodeProtobuf(SENT.deployment) as { spec?: { replicas?: number; paused?: boolean } };
    assert.deepEqual([deployment?.replicas, deployment?.paused], [0, undefined]);
    const { metadata, spec } = decodeProtobuf(SENT.pod) as unknown as {
      metadata: object;
      spec: Record<string, unknown>;
    };
    assert.deepEqual(metadata, { name: 'p', creationTimestamp: null, labels: { a: 'b', c: '' } });
    assert.equal(spec['automountServiceAccountToken'], false);
    assert.equal('hostNetwork' in spec, false);
    assert.deepEqual(spec['volumes'], [{ name: 'v', secret: { secretName: 's', defaultMode: 0 } }]);
    assert.deepEqual(spec['containers'], [
      {
        name: 'c',
        image: 'i',
        args: ['-x', ''],
        resources: { limits: { cpu: '500m' } },
        livenessProbe: { httpGet: { port: 'web' }, initialDelaySeconds: -1 },
      },
    ]);
  });

  it('refuses anything else without falling over', () => {
    assert.throws(() => decodeProtobuf(Buffer.from('{}')), WireError);
    assert.throws(() => decodeProtobuf(Buffer.from('k8s\0')), /no kind/);
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(SENT)),
        fc.nat(),
        fc.uint8Array({ maxLength: 40 }),
        (bytes, at, noise) => {
          const damaged = Buffer.concat([
            bytes.subarray(0, at % bytes.length),
            noise,
            bytes.subarray(at % bytes.length),
          ]);
          try {
            decodeProtobuf(damaged);
          } catch (error) {
            assert.ok(error instanceof WireError, String(error));
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
