import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type HostOperation, isReading, memoryHost, observed } from '../../host/memory.ts';
import { type Host, HostError } from '../../host/port.ts';
import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import { serverCaDigest } from '../../machine-config-api/server-ca-digest.ts';
import { type CertificateInputs, ensureCertificates } from './ensure.ts';
import {
  BOOTSTRAP_KUBECONFIG,
  CLOUD_CA,
  KUBELET,
  KUBELET_CA,
  KUBELET_RESTART_RECORD,
  LIVE_KUBECONFIG,
  OS_PULL_SECRET,
  REGISTRY_CAS,
} from './paths.ts';
import { OsPullSecret } from './pull-secret.ts';
import { authoritiesOf, base64, ca, installKubelet, kubeconfigData } from './testing.ts';

const [A, B] = [await ca('old-signer'), await ca('new-signer')];
const SECRET = '{"auths":{"quay.io":{"auth":"eA=="}}}';

const spec: ControllerConfigSpec = {
  kubeAPIServerServingCAData: base64(A + B),
  cloudProviderCAData: base64(B),
  imageRegistryBundleData: [{ file: 'registry.svc..5000', data: base64(B) }],
  imageRegistryBundleUserData: [{ file: 'mine', data: base64(A) }],
  internalRegistryPullSecret: base64(SECRET),
};
const inputs: CertificateInputs = {
  spec,
  kubeconfigData: kubeconfigData(A + B),
  isRotationOpen: true,
  nodeLabels: { 'node-role.kubernetes.io/worker': '' },
};
const EXPECTED: Record<string, string> = {
  [KUBELET_CA]: A + B,
  [CLOUD_CA]: B,
  [`${REGISTRY_CAS}/registry.svc:5000/ca.crt`]: B,
  [`${REGISTRY_CAS}/mine/ca.crt`]: A,
  [OS_PULL_SECRET]: `${SECRET}\n`,
};

/** A node as the rotation finds it. */
async function oldNode() {
  const host = memoryHost();
  await installKubelet(host, A);
  await host.files.write(KUBELET_CA, Buffer.from(A));
  await host.files.write(`${REGISTRY_CAS}/gone/ca.crt`, Buffer.from(A));
  host.asked.length = 0;
  return host;
}

const ensure = (host: Host, changes: Partial<CertificateInputs> = {}) =>
  ensureCertificates(host, new OsPullSecret(host.files), { ...inputs, ...changes });

async function assertComplete(host: Host): Promise<void> {
  for (const [path, text] of Object.entries(EXPECTED)) assert.equal(String(await host.files.read(path)), text, path);
  for (const path of [BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG]) {
    assert.equal(await authoritiesOf(host, path), (A + B).trimEnd(), path);
  }
  assert.deepEqual(await host.files.list(REGISTRY_CAS), ['mine', 'registry.svc:5000']);
  assert.equal(await host.services.isActive(KUBELET), true, 'the kubelet runs');
  assert.equal(await host.files.read(KUBELET_RESTART_RECORD), undefined, 'nothing is left to do');
}

test('whoever had a file before, it is ours once it is written (spec 60, 4.5.5)', async () => {
  const host = await oldNode();
  const foreign = { uid: 1000, gid: 1000 };
  for (const path of [...Object.keys(EXPECTED), BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG]) {
    await host.files.write(path, (await host.files.read(path)) ?? Buffer.from('old'), { owner: foreign });
  }
  await ensure(host);
  for (const path of [...Object.keys(EXPECTED), BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG]) {
    const stat = await host.files.stat(path);
    assert.deepEqual([stat?.uid, stat?.gid], [0, 0], path);
  }
});

test('one pass brings everything, the next one touches nothing', async () => {
  const host = await oldNode();
  const outcome = await ensure(host);
  assert.deepEqual(outcome.problems, []);
  assert.equal(outcome.serverCaDigest, serverCaDigest(Buffer.from(A + B)));
  assert.equal(outcome.isComplete, true);
  assert.equal(outcome.written[0], KUBELET_CA, 'certificates first');
  await assertComplete(host);
  const changes: HostOperation[] = [];
  const watched = observed(host, operation => {
    if (!isReading(operation)) changes.push(operation);
  });
  const again = await ensure(watched);
  assert.deepEqual([again.written, again.problems, changes], [[], [], []]);
});

test('tampered files are mended, whatever the resource version says', async () => {
  const host = await oldNode();
  await ensure(host);
  await host.files.write(KUBELET_CA, Buffer.from('evil'));
  await host.files.removeTree(REGISTRY_CAS);
  const { written } = await ensure(host, { isRotationOpen: false });
  assert.deepEqual(written, [KUBELET_CA, `${REGISTRY_CAS}/registry.svc:5000/ca.crt`, `${REGISTRY_CAS}/mine/ca.crt`]);
  await assertComplete(host);
});

describe('one broken part never holds back another', () => {
  const broken: [what: string, changes: Partial<CertificateInputs>, code: string, missing: string[]][] = [
    ['no role', { nodeLabels: {} }, 'InvalidPullSecret', [OS_PULL_SECRET]],
    ['no kubelet CA', { spec: { ...spec, kubeAPIServerServingCAData: null } }, 'EmptyTrustBundle', [KUBELET_CA]],
    [
      'a registry outside',
      {
        spec: {
          ...spec,
          imageRegistryBundleData: [...(spec.imageRegistryBundleData ?? []), { file: 'a/b', data: 'eA==' }],
        },
      },
      'InvalidRegistryName',
      [],
    ],
    ['no server CA', { kubeconfigData: undefined }, 'ServerCANotFound', []],
    ['an empty server CA', { kubeconfigData: kubeconfigData('') }, 'EmptyTrustBundle', []],
  ];
  for (const [what, changes, code, missing] of broken) {
    test(what, async () => {
      const host = await oldNode();
      const { problems, serverCaDigest: digest } = await ensure(host, changes);
      assert.deepEqual(
        problems.map(problem => problem.code),
        [code],
      );
      assert.equal(digest === undefined, 'kubeconfigData' in changes, 'said to be taken over only when it is');
      for (const [path, text] of Object.entries(EXPECTED)) {
        if (!missing.includes(path)) assert.equal(String(await host.files.read(path)), text, path);
      }
      if (missing.includes(KUBELET_CA)) assert.equal(String(await host.files.read(KUBELET_CA)), A, 'kept');
    });
  }

  test('no bundle and no rotation is no problem', async () => {
    const { problems, isComplete } = await ensure(await oldNode(), {
      kubeconfigData: undefined,
      isRotationOpen: false,
    });
    assert.deepEqual([problems, isComplete], [[], true]);
  });

  test('a directory where the kubelet CA must be', async () => {
    const host = await oldNode();
    await host.files.remove(KUBELET_CA);
    await host.files.makeDirectory(KUBELET_CA);
    const { problems, isComplete, serverCaDigest: digest } = await ensure(host);
    assert.deepEqual(
      problems.map(({ part, isPassing }) => [part, isPassing]),
      [['kubelet-ca', true]],
    );
    assert.deepEqual([isComplete, digest !== undefined], [false, true]);
    assert.equal(String(await host.files.read(CLOUD_CA)), B);
  });
});

class Died extends Error {}

/** How many operations one pass takes. */
async function operationsOfAPass(): Promise<number> {
  let count = 0;
  await ensure(observed(await oldNode(), () => void count++));
  return count;
}

test('a crash before any operation ends right after a restart, with the kubelet running', async () => {
  const total = await operationsOfAPass();
  assert.ok(total >= 25, `${total} operations`);
  let stopped = 0;
  for (let survived = 0; survived < total; survived++) {
    const host = await oldNode();
    let count = 0;
    const dying = observed(host, () => {
      if (count++ >= survived) throw new Died('killed');
    });
    const { serverCaDigest: digest } = await ensure(dying);
    const kubeletCa = String(await host.files.read(KUBELET_CA));
    assert.ok([A, A + B].includes(kubeletCa), 'a trust file is the old or the new one');
    if (digest !== undefined) assert.equal(await host.services.isActive(KUBELET), true, 'said only when it is so');
    if (!(await host.services.isActive(KUBELET))) stopped++;
    const { problems } = await ensure(host, { isRotationOpen: false });
    assert.deepEqual(problems, []);
    await assertComplete(host);
    const starts = host.asked.filter(line => line.startsWith('start'));
    assert.ok(starts.length >= 1 && starts.length <= 2, `started ${starts.length} times after dying at ${survived}`);
  }
  assert.ok(stopped > 2, 'some of the crashes left the kubelet stopped');
});

test('an operation that fails leaves the kubelet running, and the next pass makes it good', async () => {
  const total = await operationsOfAPass();
  for (let failing = 0; failing < total; failing++) {
    const host = await oldNode();
    let [count, name] = [0, ''];
    const flaky = observed(host, operation => {
      if (count++ !== failing) return;
      name = operation.name;
      throw new HostError('no-space', 'no space left');
    });
    const { problems } = await ensure(flaky);
    assert.equal(problems.length, 1, `${name} is reported`);
    assert.equal(await host.services.isActive(KUBELET), name !== 'services.start', `after ${name} failed`);
    assert.deepEqual((await ensure(host)).problems, []);
    await assertComplete(host);
  }
});
