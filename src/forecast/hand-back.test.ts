import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ISSUER, NOT_AFTER } from '../certrotation/annotations.ts';
import { TLS_CERT } from '../certrotation/secret.ts';
import { days } from '../kube/duration.ts';
import { issueClient, issueSigner } from '../pki/issue.ts';
import { type KeyAlgorithm, systemKeys } from '../pki/keys.ts';
import { encodeCertificates } from '../pki/pem.ts';
import { handBackNote } from './hand-back.ts';
import type { PlanEvent } from './model.ts';

const NOW = new Date('2030-01-01T00:00:00Z');

describe('the keys of signers and a hand-back to OpenShift 4.16', () => {
  const due: PlanEvent = {
    at: '2030-01-16T00:00:00.000Z',
    change: 'certificate',
    object: { kind: 'Secret', namespace: 'ns', name: 'leaf' },
    reason: 'past its refresh time',
    effects: [],
  };

  test('a P-256 signer: the leaves that 4.16 could not renew, and when that would be noticed', async () => {
    const objects = await chain('P-256');
    assert.match(
      handBackNote(objects, [due]) ?? '',
      /not RSA: secret\/ns\/signer; .*could not renew the 1 certificates .*the first is due at 2030-01-16T00:00:00\.000Z\)$/,
    );
    assert.match(handBackNote(objects, []) ?? '', /none of them is due before the end of this plan/);
  });

  test('an RSA signer is nothing to speak of, whatever its leaves have', async () => {
    assert.equal(handBackNote(await chain('RSA-2048', 'P-256'), [due]), undefined);
  });
});

async function chain(algorithm: KeyAlgorithm, leaf: KeyAlgorithm = algorithm) {
  const common = { keys: systemKeys, now: NOW, lifetimeMs: days(30) };
  const signer = await issueSigner({ ...common, algorithm, commonName: 'ns_signer@1893456000' });
  const client = await issueClient({ ...common, algorithm: leaf, signer, user: { name: 'somebody' } });
  const secretOf = (name: string, { chain: certificates }: typeof signer) => ({
    metadata: {
      namespace: 'ns',
      name,
      annotations: { [NOT_AFTER]: '2030-01-31T00:00:00Z', [ISSUER]: 'ns_signer@1893456000' },
    },
    data: { [TLS_CERT]: Buffer.from(encodeCertificates(certificates)).toString('base64') },
  });
  return { secrets: [secretOf('signer', signer), secretOf('leaf', client)], configMaps: [] };
}
