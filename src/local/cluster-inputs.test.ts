import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Engine, startEngine } from '../api/api.ts';
import { loadSecret } from '../certrotation/secret.ts';
import { systemClock } from '../kube/clock.ts';
import { MemoryKube } from '../kube/memory.ts';
import { SECRETS } from '../kube/resource.ts';
import { ensureCluster } from '../kube-apiserver/ensure-cluster.ts';
import { API_SERVERS, AUTHENTICATIONS, CLUSTER } from '../kube-apiserver/resources.ts';
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

  test("what upstream's controllers read at once is there, as they want to read it", async () => {
    const { kube } = engine;
    assert.equal((await kube.get(AUTHENTICATIONS, CLUSTER)).spec?.type, 'None');
    await ensureCluster(kube);
    assert.equal((await kube.get(API_SERVERS, CLUSTER)).spec?.audit?.profile, 'Default');
    // Also where somebody made it without any wish.
    await kube.delete(API_SERVERS, CLUSTER);
    await kube.create(API_SERVERS, { metadata: CLUSTER, spec: {} });
    assert.equal((await kube.get(API_SERVERS, CLUSTER)).spec?.audit?.profile, 'Default');
  });

  test('the audit profile is named where the definition has no default for it', async () => {
    const kube = new MemoryKube();
    await ensureCluster(kube);
    assert.equal((await kube.get(API_SERVERS, CLUSTER)).spec?.audit?.profile, 'Default');
  });

  test('what others have set stays', async () => {
    const { kube } = engine;
    const issuer = { serviceAccountIssuer: 'https://issuer.example' };
    await kube.patch(AUTHENTICATIONS, CLUSTER, { type: 'merge', body: { spec: issuer } });
    await provide();
    assert.equal((await kube.get(AUTHENTICATIONS, CLUSTER)).spec?.serviceAccountIssuer, issuer.serviceAccountIssuer);
  });

  test('what signs the certificates of kubelets is RSA unless somebody wants something else', async () => {
    assert.equal(keyAlgorithmOf(loadSecret(await engine.kube.get(SECRETS, CSR_SIGNER)).key), 'RSA-2048');
  });
});
