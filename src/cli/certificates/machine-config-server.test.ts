import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rotationUnit } from '../../certrotation/config.ts';
import { servingCreator } from '../../certrotation/creator.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import { secretOf, testSigner } from '../../inventory/testing.ts';
import { days } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { CONFIG_MAPS, PODS, SECRETS } from '../../kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../kube-apiserver/resources.ts';
import { ownCertificate } from '../../pki/authority.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { ignitionWithCa } from './ignition-ca.ts';
import { distributeJoinCa, withCa } from './join-ca.ts';
import { foreseen, restartServer } from './machine-config-server.ts';
import type { Outcome } from './outcome.ts';

const MACHINES = 'openshift-machine-api';

function userData(authority: object): string {
  return JSON.stringify({ ignition: { security: { tls: { certificateAuthorities: [authority] } } } });
}

function dataUrl(text: string): string {
  return `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`;
}

describe('the CA that new machines trust', async () => {
  // These are judged by the real clock.
  const daysOld = (days: number) => Math.floor((Date.parse('2026-01-01T00:00:00Z') - Date.now()) / 86_400_000) + days;
  const [installer, expired, current] = await Promise.all([
    testSigner('root-ca', daysOld(30), 3650),
    testSigner('expired', daysOld(30), 10),
    testSigner('machine-config-server-ca', daysOld(1), 3650),
  ]);
  const stored = encodeCertificates([...installer.chain, ...expired.chain]);
  const wanted = encodeCertificates([...current.chain, ...installer.chain]);
  const texts = (outcomes: readonly Outcome[]) =>
    outcomes.map(({ object, outcome, text }) => `${object.name} ${outcome}: ${text}`);

  async function machines(userDataOf: Record<string, string | undefined>, kube = new MemoryKube()) {
    for (const [name, text] of Object.entries(userDataOf)) {
      const data = text === undefined ? {} : { userData: Buffer.from(text).toString('base64') };
      await kube.create(SECRETS, { metadata: { namespace: MACHINES, name }, data });
    }
    return kube;
  }

  test('the one they have stays beside the new one while it is valid (spec 70, 9.9)', async () => {
    const kube = await machines({ worker: userData({ source: dataUrl(stored) }) });
    assert.deepEqual(texts(await distributeJoinCa(kube, ownCertificate(current), { dryRun: false })), [
      'worker done: updated',
    ]);
    const { data } = await kube.get(SECRETS, { namespace: MACHINES, name: 'worker' });
    assert.equal(Buffer.from(data?.userData ?? '', 'base64').toString(), userData({ source: dataUrl(wanted) }));
    assert.deepEqual(texts(await distributeJoinCa(kube, ownCertificate(current), { dryRun: false })), [
      'worker unchanged: is current',
    ]);
  });

  for (const [what, status] of [
    ['platformStatus', { platformStatus: { type: 'BareMetal' } }],
    ['platform, as older clusters say it', { platform: 'BareMetal' }],
  ] as const) {
    test(`on bare metal by ${what}, root-ca keeps the old one too, and is not written for nothing`, async () => {
      const kube = new MemoryKube();
      await kube.create(INFRASTRUCTURES, { metadata: CLUSTER, status });
      const metadata = { namespace: 'kube-system', name: 'root-ca' };
      await kube.create(CONFIG_MAPS, { metadata, data: { 'ca.crt': stored } });
      assert.deepEqual(texts(await distributeJoinCa(kube, ownCertificate(current), { dryRun: false })), [
        'root-ca done: updated: all nodes will reboot',
      ]);
      assert.equal((await kube.get(CONFIG_MAPS, metadata)).data?.['ca.crt'], wanted);
      assert.deepEqual(texts(await distributeJoinCa(kube, ownCertificate(current), { dryRun: false })), [
        'root-ca unchanged: is current',
      ]);
    });
  }

  test('a text that has every CA stays as it is, whatever its order', () => {
    const other = `# ours\n${encodeCertificates([...installer.chain, ...current.chain])}`;
    assert.equal(withCa(other, [ownCertificate(current)], new Date()), other);
  });

  test('one Secret that cannot be read or written keeps no other from being right (9.8)', async () => {
    class Conflicting extends MemoryKube {
      override update: MemoryKube['update'] = async (resource, object) => {
        if (object.metadata?.name === 'f-conflict') throw new KubeError(409, 'Conflict', 'written by somebody else');
        return super.update(resource, object);
      };
    }
    const good = userData({ source: dataUrl(stored) });
    const kube = await machines(
      {
        'a-null': '{"ignition":null}',
        'b-list': '{"ignition":[]}',
        'c-null-authority': userData(null as unknown as object),
        'd-text-authority': userData('x' as unknown as object),
        'e-number-source': userData({ source: 5 }),
        'f-conflict': good,
        'g-nothing': 'null',
        'h-none': undefined,
        'master-user-data-managed': good,
        'z-good': good,
      },
      new Conflicting(),
    );
    const noSource = 'the certificate authority in userData has no source';
    const noSection = 'userData has no ignition section';
    const outcomes = await distributeJoinCa(kube, ownCertificate(current), { dryRun: false });
    assert.deepEqual(texts(outcomes), [
      `a-null skipped: ${noSection}`,
      `b-list skipped: ${noSection}`,
      `c-null-authority failed: ${noSource}`,
      `d-text-authority failed: ${noSource}`,
      `e-number-source failed: ${noSource}`,
      'f-conflict failed: written by somebody else',
      `g-nothing skipped: ${noSection}`,
      'h-none skipped: it has no userData',
      'master-user-data-managed skipped: the machine-config operator writes it',
      'z-good done: updated',
    ]);
    assert.deepEqual(
      outcomes.filter(({ outcome, isNoted }) => outcome === 'skipped' && isNoted).map(({ object }) => object.name),
      ['a-null', 'b-list', 'g-nothing'],
      'no ignition section is said without -v too (2.5)',
    );
  });

  test('the hash and the compression of the old content go with it', () => {
    const authority = { source: 'data:,old', verification: { hash: 'sha512-00' }, compression: '', httpHeaders: [] };
    const update = ignitionWithCa(userData(authority), () => 'PEM');
    assert.deepEqual(update, { do: 'update', text: userData({ source: dataUrl('PEM'), httpHeaders: [] }) });
  });
});

describe('a dry run of the serving certificate (spec 70, 2.4)', async () => {
  const creator = servingCreator({ hostnames: ['api.example.com'] });
  const lifetime = { validityMs: days(3650), refreshMs: days(3285) };
  const place = { namespace: 'n', name: 'x' };
  const unit = rotationUnit({
    name: 'X',
    signer: { ...place, ...lifetime },
    bundle: place,
    target: { ...place, ...lifetime, creator },
  });
  const nothing = { signer: undefined, bundle: undefined, serving: undefined };

  test('without a signer both are made, and machines would get its CA', async () => {
    const { decisions, ca } = await foreseen(unit, nothing, new Date());
    assert.deepEqual(
      decisions.map(({ outcome, text }) => [outcome, text]),
      [
        ['done', 'would be made anew'],
        ['done', 'would be made anew'],
      ],
    );
    assert.match(ca?.subject.commonName ?? '', /^openshift-machine-config-operator_machine-config-server-ca@\d+$/);
  });

  test('a signer that needs a person is a failure, and nothing else would be done', async () => {
    const pair = await testSigner('s', -1, 3650);
    const { 'tls.key': _key, ...data } = secretOf('s', pair, 'signer').data ?? {};
    const signer = { ...secretOf('s', pair, 'signer'), data };
    const { decisions, ca } = await foreseen(unit, { ...nothing, signer }, ownCertificate(pair).notBefore);
    assert.deepEqual([decisions.map(({ outcome }) => outcome), ca], [['failed'], undefined]);
  });

  test('a certificate that is fine stays', async () => {
    const pair = await testSigner('s', -1, 3650);
    const now = ownCertificate(pair).notBefore;
    const { decisions, ca } = await foreseen(unit, { ...nothing, signer: secretOf('s', pair, 'signer') }, now);
    assert.deepEqual(decisions[0]?.text, 'would stay');
    assert.deepEqual(ca?.der, ownCertificate(pair).der);
    assert.equal(certificatesIn(encodeCertificates(pair.chain)).length, 1);
  });
});

test('a pod that is gone by itself does not end the restart of the server', async () => {
  class Racing extends MemoryKube {
    override delete: MemoryKube['delete'] = async (resource, key) => {
      if (key.name === 'a') throw new KubeError(404, 'NotFound', 'pods "a" not found');
      await super.delete(resource, key);
    };
  }
  const kube = new Racing();
  for (const name of ['a', 'b'])
    await kube.create(PODS, { metadata: { namespace: 'openshift-machine-config-operator', name } });
  const outcomes: Outcome[] = [];
  await restartServer(kube, outcomes);
  assert.deepEqual(
    outcomes.map(({ object, outcome }) => [object.name, outcome]),
    [
      ['a', 'unchanged'],
      ['b', 'done'],
    ],
  );
});
