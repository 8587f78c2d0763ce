import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NOT_AFTER } from '../../certrotation/annotations.ts';
import { dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { nextKey, previousKey } from '../../hand-over/family.ts';
import { TAKEN_BACK, TURNED_ROUND } from '../../hand-over/names.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import { bundleOf, daysFromNow, NOW, secretOf, testSigner } from '../../inventory/testing.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { ConnectionError } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import { MemoryKube } from '../../kube/memory.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, resource, SECRETS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { type CertificateAndKey, ownCertificate } from '../../pki/authority.ts';
import { verifyChain } from '../../pki/chain.ts';
import { issueServing } from '../../pki/issue.ts';
import { type Keys, systemKeys } from '../../pki/keys.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { authoritiesIn } from './ignition-ca.ts';
import { JOIN_SERVING, JOIN_SIGNER } from './join-ca.ts';
import type { Outcome } from './outcome.ts';
import { handServerOver, serverUnit } from './server-hand-over.ts';

const MACHINES = 'openshift-machine-api';
const HOST = 'api-int.example.com';
const UNIT = serverUnit([HOST]);
const MACHINE_KIND = resource('machine.openshift.io/v1beta1', 'Machine', 'machines', true);
const keys: Keys = { ...systemKeys, generate: () => systemKeys.generate('P-256') };
const clock = new VirtualClock(NOW);

const [ours, installers] = await Promise.all([testSigner('join', 2, 3650), testSigner('root-ca', 3, 3650)]);

function userDataWith(...cas: readonly CertificateAndKey[]): string {
  const pem = encodeCertificates(cas.map(ownCertificate));
  const source = `data:text/plain;charset=utf-8;base64,${Buffer.from(pem).toString('base64')}`;
  return JSON.stringify({ ignition: { security: { tls: { certificateAuthorities: [{ source }] } } } });
}

async function served(kube: Kube, signer: CertificateAndKey): Promise<void> {
  const lifetimeMs = daysFromNow(3000).getTime() - NOW.getTime();
  const pair = await issueServing({
    keys,
    algorithm: 'P-256',
    now: daysFromNow(-1),
    lifetimeMs,
    signer,
    hostnames: [HOST],
  });
  await kube.create(SECRETS, {
    ...secretOf('x', pair, 'target', [HOST]),
    metadata: metadataOf(pair, JOIN_SERVING, 'target'),
  });
}

function metadataOf(pair: CertificateAndKey, place: typeof JOIN_SIGNER, role: 'signer' | 'target', annotations = {}) {
  const { metadata } = secretOf('x', pair, role, role === 'target' ? [HOST] : undefined);
  return { ...metadata, ...place, annotations: { ...metadata?.annotations, ...annotations } };
}

async function machinesWith(kube: Kube, userData: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(userData)) {
    const data = { userData: Buffer.from(text).toString('base64') };
    await kube.create(SECRETS, { metadata: { namespace: MACHINES, name }, data });
  }
}

async function withoutAnnotations(kube: Kube): Promise<void> {
  const serving = await kube.get(SECRETS, JOIN_SERVING);
  await kube.update(SECRETS, { ...serving, metadata: { ...serving.metadata, annotations: {} } });
}

/** A cluster whose signer somebody wants replaced, or which is the installer's. */
async function world(from: 'ours' | 'installer'): Promise<MemoryKube> {
  const kube = new MemoryKube();
  const signer = from === 'ours' ? ours : installers;
  await served(kube, signer);
  // The installer notes nothing on what it makes.
  if (from === 'installer') await withoutAnnotations(kube);
  if (from === 'ours') {
    const forced = metadataOf(ours, JOIN_SIGNER, 'signer', { [NOT_AFTER]: 'force-regeneration' });
    await kube.create(SECRETS, { ...secretOf('x', ours, 'signer'), metadata: forced });
    await kube.create(CONFIG_MAPS, { ...bundleOf('x', ours), metadata: { ...JOIN_SIGNER } });
  }
  await machinesWith(kube, {
    'worker-user-data': userDataWith(signer),
    'infra-user-data': userDataWith(signer, installers),
    // Made of something that the server has nothing to do with: refused today already.
    'worker-user-data-managed': userDataWith(await testSigner('other', 1, 3650)),
  });
  return kube;
}

async function handOver(kube: Kube, more = {}): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  await handServerOver(kube, { unit: UNIT, updateIgnition: true, clock, keys, ...more }, outcomes);
  return outcomes;
}

const COUNTED = ['worker-user-data', 'infra-user-data'];

/** A machine that boots now meets the server: it accepts what that shows, with nothing but what it was given. */
async function assertEverybodyJoins(kube: Kube, when: string, counted = COUNTED): Promise<void> {
  const [leaf, ...intermediates] = certificatesIn(dataText(await kube.get(SECRETS, JOIN_SERVING), TLS_CERT));
  for (const name of counted) {
    const text = dataText(await kube.get(SECRETS, { namespace: MACHINES, name }), 'userData') ?? '';
    const roots = (authoritiesIn(text) ?? []).flatMap(certificatesIn);
    const answer = verifyChain({
      leaf: leaf ?? assert.fail(),
      intermediates,
      roots,
      now: NOW,
      usage: 'serverAuth',
      host: HOST,
    });
    assert.ok(answer.ok, `${when}: a machine of ${name} refuses the server`);
  }
}

async function signedBy(kube: Kube): Promise<string> {
  return certificatesIn(dataText(await kube.get(SECRETS, JOIN_SERVING), TLS_CERT))[0]?.issuer.commonName ?? '';
}

type Moment = 'before' | 'after';

/** The same API in the hands of a process that dies at its write number `at`; after every write somebody looks. */
function dying(kube: MemoryKube, at: number, moment: Moment, look: (write: number) => Promise<void>): Kube {
  let [writes, isDead] = [0, false];
  const dead = () => new ConnectionError('CLOSED', 'this process is dead');
  return new Proxy(kube, {
    get(target, verb: keyof MemoryKube) {
      const work = (target[verb] as (...args: unknown[]) => unknown).bind(target);
      return async (...args: unknown[]) => {
        if (isDead) throw dead();
        if (verb === 'get' || verb === 'list') return work(...args);
        isDead = ++writes === at;
        if (isDead && moment === 'before') throw dead();
        const written = await work(...args);
        await look(writes);
        if (isDead) throw dead();
        return written;
      };
    },
  });
}

describe('the CA of the machine-config server changes', () => {
  test('machines know the new one before the server shows it, and the old one stays', async () => {
    const kube = await world('ours');
    const outcomes = await handOver(kube);
    const texts = outcomes.map(({ object, outcome }) => `${object.kind} ${object.name} ${outcome}`);
    assert.deepEqual(texts, [
      'Secret machine-config-server-ca done',
      'ConfigMap machine-config-server-ca done',
      'Secret machine-config-server-tls done',
      'Secret worker-user-data done',
      'Secret infra-user-data done',
      'Secret worker-user-data-managed skipped',
    ]);
    assert.notEqual(await signedBy(kube), ownCertificate(ours).subject.commonName);
    const bundle = certificatesIn((await kube.get(CONFIG_MAPS, JOIN_SIGNER)).data?.['ca-bundle.crt']);
    assert.equal(bundle.length, 2, 'the old one stays');
    await assertEverybodyJoins(kube, 'at the end');
    assert.equal(await getIfPresent(kube, SECRETS, nextKey(JOIN_SIGNER)), undefined);
    const again = await handOver(kube);
    assert.deepEqual([...new Set(again.map(({ outcome }) => outcome))], ['unchanged', 'skipped']);
  });

  for (const from of ['ours', 'installer'] as const) {
    for (const moment of ['before', 'after'] as const) {
      test(`an end ${moment} any write (the signer is ${from}): nobody refuses it, and the next run goes on`, async () => {
        for (let at = 1; ; at++) {
          const kube = await world(from);
          const look = (write: number) => assertEverybodyJoins(kube, `${moment} write ${at}, at ${write}`);
          const isOver = await handOver(dying(kube, at, moment, look)).then(
            () => true,
            () => false,
          );
          await assertEverybodyJoins(kube, `dead ${moment} write ${at}`);
          await handOver(dying(kube, Number.POSITIVE_INFINITY, moment, look));
          const old = from === 'ours' ? ours : installers;
          assert.notEqual(await signedBy(kube), ownCertificate(old).subject.commonName, `${moment} write ${at}`);
          await assertEverybodyJoins(kube, `after the second run, ${moment} write ${at}`);
          if (isOver) break;
          assert.ok(at < 100, 'it comes to an end');
        }
      });
    }
  }

  test('without user data that has it, it waits, by name, and goes on when it has', async () => {
    const kube = await world('ours');
    const held = (await handOver(kube, { updateIgnition: false })).find(({ outcome }) => outcome === 'held');
    assert.match(
      held?.text ?? '',
      /^Distributing: waiting for machines of secret\/infra-user-data, machines of secret\/worker-user-data/,
    );
    assert.equal(await signedBy(kube), ownCertificate(ours).subject.commonName);
    await handOver(kube);
    assert.notEqual(await signedBy(kube), ownCertificate(ours).subject.commonName);
  });

  test('user data that the machine-config operator makes holds it up where machines join with it', async () => {
    const kube = await world('ours');
    const managed = { namespace: MACHINES, name: 'worker-user-data-managed' };
    const give = async (...cas: CertificateAndKey[]) => {
      const secret = await kube.get(SECRETS, managed);
      await kube.update(SECRETS, {
        ...secret,
        data: { userData: Buffer.from(userDataWith(...cas)).toString('base64') },
      });
    };
    await give(ours);
    const held = (await handOver(kube)).find(({ outcome }) => outcome === 'held');
    assert.match(held?.details?.join() ?? '', /worker-user-data-managed: .*root-ca.*--update-root-ca/);
    await assertEverybodyJoins(kube, 'while it waits', [...COUNTED, managed.name]);
    const [next] = certificatesIn(dataText(await kube.get(SECRETS, nextKey(JOIN_SIGNER)), TLS_CERT));
    await give(ours, { chain: [next ?? assert.fail()], key: ours.key });
    await handOver(kube);
    await assertEverybodyJoins(kube, 'afterwards', [...COUNTED, managed.name]);
    assert.notEqual(await signedBy(kube), ownCertificate(ours).subject.commonName);
  });

  test('a machine on its way is waited for until it has joined', async () => {
    const kube = await world('ours');
    const machine = (status: object): KubeObject & { spec: object; status: object } => ({
      metadata: { namespace: MACHINES, name: 'worker-7', creationTimestamp: formatRfc3339(daysFromNow(-1)) },
      spec: { providerSpec: { value: { userDataSecret: { name: 'worker-user-data' } } } },
      status,
    });
    await kube.create(MACHINE_KIND, machine({ phase: 'Provisioned' }));
    const held = (await handOver(kube)).find(({ outcome }) => outcome === 'held');
    assert.match(held?.text ?? '', /waiting for machine worker-7/);
    await kube.update(MACHINE_KIND, machine({ phase: 'Running', nodeRef: { name: 'worker-7' } }));
    assert.equal(
      (await handOver(kube)).some(({ outcome }) => outcome === 'held'),
      false,
    );
    assert.notEqual(await signedBy(kube), ownCertificate(ours).subject.commonName);
  });

  for (const moment of ['before', 'after'] as const) {
    test(`taken back while it waits, the new one is nowhere any more, whatever ends it ${moment} a write`, async () => {
      for (let at = 1; ; at++) {
        const kube = await world('ours');
        await machinesWith(kube, { 'z-managed-user-data-managed': userDataWith(ours) });
        await handOver(kube);
        const next = await kube.get(SECRETS, nextKey(JOIN_SIGNER));
        const annotations = { ...next.metadata?.annotations, [TAKEN_BACK]: formatRfc3339(NOW) };
        await kube.update(SECRETS, { ...next, metadata: { ...next.metadata, annotations } });
        const look = (write: number) => assertEverybodyJoins(kube, `${moment} write ${at}, at ${write}`);
        const isOver = await handOver(dying(kube, at, moment, look)).then(
          () => true,
          () => false,
        );
        await handOver(kube);
        const [ca] = certificatesIn(dataText(next, TLS_CERT));
        const texts = await Promise.all(
          COUNTED.map(async name => dataText(await kube.get(SECRETS, { namespace: MACHINES, name }), 'userData') ?? ''),
        );
        const known = texts.flatMap(text => authoritiesIn(text) ?? []).flatMap(certificatesIn);
        assert.ok(!known.some(({ der }) => der.equals(ca?.der ?? Buffer.alloc(0))), `${moment} write ${at}`);
        assert.equal(await signedBy(kube), ownCertificate(ours).subject.commonName);
        await assertEverybodyJoins(kube, 'afterwards');
        if (isOver) break;
      }
    });
  }

  test('turned round, the one before is handed over to again', async () => {
    const kube = await world('ours');
    await handOver(kube);
    assert.ok(await getIfPresent(kube, SECRETS, previousKey(JOIN_SIGNER)));
    const signer = await kube.get(SECRETS, JOIN_SIGNER);
    const annotations = { ...signer.metadata?.annotations, [TURNED_ROUND]: formatRfc3339(NOW) };
    await kube.update(SECRETS, { ...signer, metadata: { ...signer.metadata, annotations } });
    const look = (write: number) => assertEverybodyJoins(kube, `at write ${write}`);
    await handOver(dying(kube, Number.POSITIVE_INFINITY, 'after', look));
    assert.equal(await signedBy(kube), ownCertificate(ours).subject.commonName);
  });
});
