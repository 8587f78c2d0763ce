import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Engine, startEngine } from '../api/api.ts';
import { loadSecret } from '../certrotation/secret.ts';
import { systemClock } from '../kube/clock.ts';
import { SECRETS } from '../kube/resource.ts';
import { keyAlgorithmOf, systemKeys } from '../pki/keys.ts';
import { CSR_SIGNER, provideClusterInputs } from './cluster-inputs.ts';
import { applyDefinitions } from './definitions.ts';

describe('what others would provide', () => {
  let engine: Engine;
  const provide = () =>
    provideClusterInputs({
      kube: engine.kube,
      clock: systemClock,
      keys: systemKeys,
      controlPlane: new Map([['master-0', '127.0.0.1']]),
      hasEtcd: true,
    });

  before(async () => {
    engine = await startEngine();
    await applyDefinitions(engine.kube);
    await engine.idle();
    await provide();
  });
  after(() => engine.close());

  test('what signs the certificates of kubelets is RSA unless somebody wants something else', async () => {
    assert.equal(keyAlgorithmOf(loadSecret(await engine.kube.get(SECRETS, CSR_SIGNER)).key), 'RSA-2048');
  });
});
