import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { dump } from 'js-yaml';
import type { Node, Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../certrotation/annotations.ts';
import { SINCE } from '../hand-over/names.ts';
import { KubeError } from '../kube/error.ts';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS, type KubeObject, SECRETS } from '../kube/resource.ts';
import { loadObjects } from './files.ts';
import { InputError } from './input-error.ts';
import { withoutPrivateData } from './public-secret.ts';
import { inventoryOf, readInventory, readObjects } from './read.ts';
import { clusterSource, fileSource } from './source.ts';
import { bundleOf, NOW, secretOf, testClient, testServing, testSigner } from './testing.ts';

async function cluster() {
  const signer = await testSigner('signer');
  const client = secretOf('client', await testClient(signer, 'somebody'), 'target');
  const serving = secretOf('serving', await testServing(signer, ['localhost']), 'target', ['localhost']);
  return {
    signer,
    client,
    serving,
    signerSecret: secretOf('signer', signer, 'signer'),
    bundle: bundleOf('bundle', signer),
  };
}

function inventory(
  secrets: readonly Secret[],
  configMaps: Parameters<typeof inventoryOf>[0]['configMaps'] = [],
  now = NOW,
) {
  const objects = { secrets: secrets.map(withoutPrivateData), configMaps, nodes: [], operands: [], pools: [] };
  return inventoryOf(objects, now);
}

describe('certificates of a cluster', () => {
  test('a signer that waits for its hand-over is looked after, however soon it ends (spec 90)', async () => {
    const { metadata: _metadata, ...rest } = secretOf('signer', await testSigner('signer', 1, 20), 'signer');
    const found = (annotations: Record<string, string>) =>
      inventory([{ ...rest, metadata: { namespace: 'ns', name: 'signer-next', annotations } }]).certificates[0];
    assert.equal(found({})?.state, 'Expiring');
    const waiting = found({ [SINCE]: NOW.toISOString() });
    assert.deepEqual(
      [waiting?.state, waiting?.purpose],
      ['Good', 'Signs in place of signer once everybody has loaded it.'],
    );
  });

  test('roles, states, who signed what, who trusts it, and when the next rule fires', async () => {
    const { signerSecret, client, serving, bundle } = await cluster();
    const { certificates, bundles } = inventory([signerSecret, client, serving], [bundle]);
    assert.deepEqual(
      certificates.map(({ metadata, role, state, signedBy }) => [metadata.name, role, state, signedBy?.name]),
      [
        ['client', 'target', 'Good', 'signer'],
        ['serving', 'target', 'Good', 'signer'],
        ['signer', 'signer', 'Good', 'signer'],
      ],
    );
    assert.deepEqual(
      certificates[0]?.trustedBy.map(({ name }) => name),
      ['bundle'],
    );
    assert.equal(certificates[0]?.next?.rule, 'T-5');
    assert.deepEqual(certificates[1]?.certificate?.hostnames, ['localhost']);
    assert.deepEqual(
      bundles.map(({ state, certificates: cas }) => [state, cas.length]),
      [['Good', 1]],
    );
  });

  test('nothing private is in the model, nor in what a source gives', async () => {
    const { signerSecret, client, bundle } = await cluster();
    const kube = new MemoryKube();
    for (const secret of [signerSecret, client]) await kube.create(SECRETS, secret);
    await kube.create(SECRETS, {
      metadata: {
        namespace: 'ns',
        name: 'token',
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': 'sEcReT' },
      },
      data: { token: Buffer.from('sEcReT').toString('base64') },
    });
    await kube.create(CONFIG_MAPS, bundle);
    const objects = await readObjects(clusterSource(kube), { parts: ['certificates'] });
    const text = JSON.stringify([objects, await readInventory(clusterSource(kube), { parts: ['certificates'] }, NOW)]);
    for (const secret of [signerSecret, client]) assert.ok(!text.includes(secret.data?.['tls.key'] ?? 'x'));
    assert.ok(
      !text.includes('PRIVATE KEY') &&
        !text.includes('sEcReT') &&
        !text.includes(Buffer.from('sEcReT').toString('base64')),
    );
  });

  test('a forced, an expired, a broken and a foreign certificate', async () => {
    const { signerSecret, client, bundle, signer } = await cluster();
    const forced = {
      ...client,
      metadata: {
        ...client.metadata,
        annotations: { ...client.metadata?.annotations, [NOT_AFTER]: 'force-regeneration' },
      },
    };
    const other = secretOf('other', await testClient(signer, 'other'), 'target');
    const broken = {
      ...client,
      metadata: { ...client.metadata, name: 'broken' },
      data: { ...client.data, 'tls.key': other.data?.['tls.key'] ?? '' },
    };
    const expired = secretOf('expired', await testClient(signer, 'late', 20), 'target');
    const plain: Secret = {
      metadata: { namespace: 'app', name: 'plain' },
      type: 'kubernetes.io/tls',
      data: { ...other.data },
    };
    const { certificates } = inventory(
      [signerSecret, forced, broken, expired, plain],
      [bundle],
      new Date(NOW.getTime() + 12 * 86_400_000),
    );
    const states = Object.fromEntries(certificates.map(({ metadata, state, role }) => [metadata.name, [state, role]]));
    assert.deepEqual(states, {
      client: ['Due', 'target'],
      broken: ['Unusable', 'target'],
      expired: ['Expired', 'target'],
      plain: ['Expiring', 'unmanaged'],
      signer: ['Good', 'signer'],
    });
  });

  test('somebody who may see one namespace only gets what can be told from it', async () => {
    const { client, bundle } = await cluster();
    const kube = new MemoryKube();
    await kube.create(SECRETS, client);
    await kube.create(CONFIG_MAPS, bundle);
    const list: typeof kube.list = async (kinds, options) => {
      if (options?.namespace === undefined) throw new KubeError(403, 'Forbidden', 'not allowed');
      return kube.list(kinds, options);
    };
    const source = clusterSource({ list });
    const { certificates } = await readInventory(source, { parts: ['certificates'], namespace: 'ns' }, NOW);
    assert.deepEqual(
      certificates.map(({ metadata }) => metadata.name),
      ['client'],
    );
    await assert.rejects(readInventory(source, { parts: ['certificates'] }, NOW), /not allowed/);
  });

  test('copies of revisions are left out', async () => {
    const { client } = await cluster();
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'revision-status-3', uid: 'u' }];
    const copy = { ...client, metadata: { ...client.metadata, name: 'client-3', ownerReferences } };
    assert.deepEqual(
      inventory([client, copy]).certificates.map(({ metadata }) => metadata.name),
      ['client'],
    );
  });
});

describe('certificates in places other than tls.crt and ca-bundle.crt (spec 70, 5.2)', () => {
  const kubeconfig = (ca: string, client: string, key: string, isYaml: boolean) => {
    const text = JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: 'https://x', 'certificate-authority-data': base64(ca) } }],
      users: [
        { name: 'none', user: {} },
        { name: 'u', user: { 'client-certificate-data': base64(client), 'client-key-data': base64(key) } },
      ],
    });
    return isYaml ? dump(JSON.parse(text)) : text;
  };
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const pemOf = (secret: Secret, key: string) => Buffer.from(secret.data?.[key] ?? '', 'base64').toString();

  for (const isYaml of [true, false]) {
    test(`client certificates of kubeconfigs in Secrets, as ${isYaml ? 'YAML' : 'JSON'}, without their keys`, async () => {
      const { signer, client, signerSecret, bundle } = await cluster();
      const late = secretOf('late', await testClient(signer, 'late', 10), 'target');
      const ca = bundle.data?.['ca-bundle.crt'] ?? '';
      const configs = [client, late].map(secret =>
        kubeconfig(ca, pemOf(secret, 'tls.crt'), pemOf(secret, 'tls.key'), isYaml),
      );
      const holder: Secret = {
        metadata: { namespace: 'ns', name: 'kubeconfigs' },
        data: { a: base64(configs[0] ?? ''), b: base64(configs[1] ?? ''), token: base64('clusters: users: {') },
      };
      assert.ok(!JSON.stringify(withoutPrivateData(holder)).includes(base64(pemOf(client, 'tls.key')).slice(40, 80)));
      const { certificates } = inventory([signerSecret, holder], [bundle]);
      const found = certificates.find(({ metadata }) => metadata.name === 'kubeconfigs');
      assert.deepEqual(
        [found?.certificate?.subject, found?.kubeconfigs, found?.signedBy?.name, found?.trustedBy.map(r => r.name)],
        ['late', ['a', 'b'], 'signer', ['bundle']],
      );
    });
  }

  test('CAs of kubeconfigs in ConfigMaps, and of the image registry', async () => {
    const { client, bundle } = await cluster();
    const ca = bundle.data?.['ca-bundle.crt'] ?? '';
    const metadata = (name: string) => ({ namespace: 'ns', name });
    const { bundles } = inventory(
      [],
      [
        { metadata: metadata('config'), data: { kubeconfig: kubeconfig(ca, pemOf(client, 'tls.crt'), '', true) } },
        { metadata: metadata('registry'), data: { 'image-registry.openshift-image-registry.svc..5000': ca } },
      ],
    );
    assert.deepEqual(
      bundles.map(item => [item.metadata.name, item.keys, item.certificates.length]),
      [
        ['config', ['kubeconfig'], 1],
        ['registry', ['image-registry.openshift-image-registry.svc..5000'], 1],
      ],
    );
  });

  test('copies that monitoring keeps are left out (spec 70, 5.3)', async () => {
    const { client, bundle } = await cluster();
    const hashed = <T extends KubeObject>(object: T): T => ({
      ...object,
      metadata: { ...object.metadata, name: 'copy', labels: { 'monitoring.openshift.io/hash': 'abc' } },
    });
    const { certificates, bundles } = inventory([client, hashed(client)], [bundle, hashed(bundle)]);
    assert.deepEqual(
      [...certificates, ...bundles].map(({ metadata }) => metadata.name),
      ['client', 'bundle'],
    );
  });
});

test('nodes with their roles and revisions, revisions with their nodes', () => {
  const node: Node = {
    metadata: { name: 'master-0', labels: { 'node-role.kubernetes.io/master': '' } },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  };
  const nodeStatuses = [{ nodeName: 'master-0', currentRevision: 2, targetRevision: 3 }];
  const operands = [
    {
      operand: 'etcd',
      namespace: 'openshift-etcd',
      resource: { status: { nodeStatuses, latestAvailableRevision: 3 } },
    },
  ];
  const status = (revision: number) => ({
    metadata: {
      namespace: 'openshift-etcd',
      name: `revision-status-${revision}`,
      annotations: { 'operator.openshift.io/revision-ready': 'true' },
    },
    data: { revision: String(revision), reason: 'because' },
  });
  const { nodes, revisions } = inventoryOf(
    { secrets: [], configMaps: [1, 2, 3].map(status), nodes: [node], operands, pools: [] },
    NOW,
  );
  assert.deepEqual(
    [nodes[0]?.roles, nodes[0]?.ready, nodes[0]?.revisions.etcd],
    [['master'], true, { current: 2, target: 3 }],
  );
  assert.deepEqual(
    revisions.map(({ revision, state, nodes: on, rollingOutTo }) => [revision, state, on, rollingOutTo]),
    [
      [1, 'Kept', [], []],
      [2, 'Current', ['master-0'], []],
      [3, 'RollingOut', [], ['master-0']],
    ],
  );
});

describe('files', () => {
  const folder = (t: TestContext) => {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-inventory-'));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    return dir;
  };

  test('a must-gather: typed lists, several documents, links and broken files', async t => {
    const dir = folder(t);
    mkdirSync(join(dir, 'namespaces/ns/core'), { recursive: true });
    const { client } = await cluster();
    writeFileSync(
      join(dir, 'namespaces/ns/core/secrets.json'),
      JSON.stringify({ kind: 'SecretList', items: [{ ...client, kind: undefined }] }),
    );
    writeFileSync(
      join(dir, 'nodes.yaml'),
      'kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: b}\n---\n- no object\n',
    );
    writeFileSync(join(dir, 'broken.yaml'), 'password: [hunter2');
    symlinkSync('/', join(dir, 'root'));
    const source = fileSource([dir]);
    assert.equal((await source.list(SECRETS)).length, 1);
    assert.equal((await source.list(SECRETS, { namespace: 'elsewhere' })).length, 0);
    assert.equal(loadObjects([dir]).objects.filter(({ kind }) => kind === 'Node').length, 2);
    assert.match(source.warnings.join(), /cannot read .*broken\.yaml: .* in line 1/);
    assert.ok(!source.warnings.join().includes('hunter2'));
  });

  test('a file that is not there is the mistake of the caller', () => {
    assert.throws(() => loadObjects(['/does/not/exist']), InputError);
  });
});
