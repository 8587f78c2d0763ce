import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { MemoryKube } from '../../kube/memory.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { type KeyAlgorithm, keyAlgorithmOf } from '../../pki/keys.ts';
import { readCertificates } from '../../pki/pem.ts';
import { adminAccess, ensureAdminKubeconfig, serverPort } from './admin-kubeconfig.ts';
import { bootstrap } from './bootstrap.ts';
import { foundingKeys } from './founding-keys.ts';
import { provideFoundingObjects } from './founding-objects.ts';
import { readPhase, writePhase } from './phase.ts';
import { MissingPrograms } from './required-programs.ts';

test('founding keys are made once, and nobody else can read them', async t => {
  const dir = folder(t);
  const [first, second] = [await foundingKeys(dir), await foundingKeys(dir)];
  assert.deepEqual(first.admin.chain[0]?.der, second.admin.chain[0]?.der);
  assert.ok(first.tokens.equals(second.tokens));
  for (const name of readdirSync(dir)) assert.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name);
});

test('what may be handed back one day is RSA, unless somebody wants something else', async t => {
  const algorithms = async (dir: string, wanted?: KeyAlgorithm) => {
    const { admin, tokens } = await foundingKeys(dir, wanted);
    return [admin.key, tokens].map(keyAlgorithmOf);
  };
  assert.deepEqual(await algorithms(folder(t)), ['RSA-2048', 'RSA-2048']);
  assert.deepEqual(await algorithms(folder(t), 'P-256'), ['P-256', 'P-256']);
});

test('the operators hear whom the founders trust; what is there already stays', async t => {
  const kube = new MemoryKube();
  const keys = await foundingKeys(folder(t));
  await provideFoundingObjects(kube, keys);
  await provideFoundingObjects(kube, await foundingKeys(folder(t)));
  const { data } = await kube.get(CONFIG_MAPS, { namespace: 'openshift-config', name: 'admin-kubeconfig-client-ca' });
  const [trusted] = readCertificates(data?.['ca-bundle.crt'] ?? '').certificates;
  assert.deepEqual(trusted?.der, keys.admin.chain[0]?.der);
});

test('the kubeconfig is written once for a port, and again when the port is another', async t => {
  const dir = folder(t);
  const access = adminAccess(dir);
  const keys = await foundingKeys(join(dir, 'pki'));
  assert.equal(serverPort(access), 0);
  await ensureAdminKubeconfig(access, 'https://127.0.0.1:1234', keys);
  const text = readFileSync(access.kubeconfigPath, 'utf8');
  await ensureAdminKubeconfig(access, 'https://127.0.0.1:1234', keys);
  assert.equal(readFileSync(access.kubeconfigPath, 'utf8'), text);
  assert.equal(serverPort(access), 1234);
  await ensureAdminKubeconfig(access, 'https://127.0.0.1:2345', keys);
  assert.equal(serverPort(access), 2345);
  assert.equal(statSync(access.kubeconfigPath).mode & 0o777, 0o600);
});

test('the phase is known afterwards; a text that is none is refused', async t => {
  const dir = folder(t);
  assert.equal(await readPhase(dir), undefined);
  await writePhase(dir, 'moving');
  assert.equal(await readPhase(dir), 'moving');
  writeFileSync(join(dir, 'self-hosting.json'), '{"phase":"flying"}');
  await assert.rejects(readPhase(dir), /expected founding, moving, self-hosted .* found flying/);
});

test('without the programs, or with too few nodes, nothing is begun', async t => {
  const dir = folder(t);
  const programs = { path: '' };
  await assert.rejects(bootstrap({ dir, programs }), (error: Error) => {
    assert.ok(error instanceof MissingPrograms);
    return /etcd, kube-apiserver, kube-controller-manager, kube-scheduler/.test(error.message);
  });
  await assert.rejects(
    bootstrap({ dir, programs, controlPlane: 1 }),
    /expected 3 control-plane nodes or more, found 1/,
  );
  assert.deepEqual(readdirSync(dir), []);
});

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-founding-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
