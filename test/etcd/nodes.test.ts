/** Nodes come and go while the signer of a real etcd is replaced. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { loadSecret, TLS_CERT } from '../../src/certrotation/secret.ts';
import { silentLog } from '../../src/controller/log.ts';
import { certCleanerReconcile, GRACE_MS } from '../../src/etcd/cert-cleaner.ts';
import { ALL_BUNDLES, ALL_CERTS, CONFIG_NAMESPACE, ETCD_NAMESPACE, GRACE_START } from '../../src/etcd/names.ts';
import { CLUSTER, ETCDS } from '../../src/etcd/resources.ts';
import { VirtualClock } from '../../src/kube/clock.ts';
import { hours } from '../../src/kube/duration.ts';
import { recordingEvents } from '../../src/kube/events.ts';
import { Informer } from '../../src/kube/informer.ts';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import type { Certificate } from '../../src/pki/certificate.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import { findEtcd, NO_ETCD } from './binary.ts';
import { RealCluster } from './cluster.ts';

const binary = findEtcd();

describe('nodes come and go', { skip: binary === undefined ? NO_ETCD : false }, () => {
  let cluster: RealCluster;
  before(async () => {
    cluster = await RealCluster.start(binary as string);
  });
  after(async () => {
    await cluster.close();
    const left = cluster.nodes.filter(({ isRunning }) => isRunning);
    assert.deepEqual(
      left.map(({ name }) => name),
      [],
    );
  });

  test('one is added and one removed during a signer rotation', async t => {
    const revision = await cluster.founded();
    const refused: string[] = [];
    let leaves = 0;
    // Every leaf of the new node, the moment it appears, is of an authority that all running revisions have.
    const secrets = new Informer<Secret>(cluster.kube, SECRETS, { selection: { namespace: ETCD_NAMESPACE } }).start();
    t.after(() => secrets.stop());
    const checks: Promise<void>[] = [];
    const check = (secret: Secret) => {
      if (!/^etcd-(peer|serving)-master-3$/.test(secret.metadata?.name ?? '')) return;
      leaves++;
      checks.push(notTrustedBy(secret).then(who => void refused.push(...who)));
    };
    secrets.subscribe({ add: check, update: (_, secret) => check(secret) });

    await cluster.force('etcd-signer');
    await cluster.until('the new CA in the bundle', () =>
      cluster.said().some(line => line.startsWith('published new CA bundles')),
    );
    assert.equal(await cluster.follows('etcd-signer'), false, 'the rotation is under way');
    const added = await cluster.addNode(3);
    await cluster.until('a vote for the new node', async () =>
      (await cluster.gateway.health()).some(
        ({ member, healthy }) => member.name === added.name && !member.isLearner && healthy,
      ),
    );
    // etcd refuses a change of its members while too many are away, and in a roll-out one always is.
    await cluster.until('the end of a membership', async () => {
      const gone = (await cluster.gateway.health()).find(({ member }) => member.name === 'master-2');
      if (gone !== undefined) await cluster.gateway.remove(gone.member.id);
      return true;
    });
    await cluster.removeNode('master-2');

    await cluster.until('the signer in use', () => cluster.follows('etcd-signer'));
    // How many revisions that takes depends on when the nodes come and go; in the end every leaf is of the new signer.
    const settled = await cluster.until(
      'leaves of the new signer on every node',
      async () => (await areAllOfTheSignerInUse()) && cluster.settled(revision + 2),
    );
    await Promise.all(checks);
    assert.ok(leaves >= 2, 'the new node has got its leaves');
    assert.deepEqual(refused, []);
    // A revision that follows the last change of nodes may be under way.
    await cluster.until('the three that are left', async () => {
      const health = await cluster.gateway.health();
      const found = health.map(({ member, healthy }) => `${member.name} ${member.isLearner} ${healthy}`);
      return isDeepStrictEqual(found.toSorted(), ['master-0 false true', 'master-1 false true', 'master-3 false true']);
    });
    await clean(new Date());
    const old = () => cluster.kube.list(SECRETS, { namespace: ETCD_NAMESPACE });
    const of2 = async () => (await old()).items.filter(({ metadata }) => metadata?.name?.endsWith('-master-2'));
    assert.ok((await of2()).every(({ metadata }) => metadata?.annotations?.[GRACE_START] !== undefined));
    assert.equal((await of2()).length, 3);
    await clean(new Date(Date.now() + GRACE_MS + hours(1)));
    assert.deepEqual(await of2(), []);
    await cluster.until('an aggregate without the node', async () => {
      const { data = {} } = await cluster.kube.get(SECRETS, { namespace: ETCD_NAMESPACE, name: ALL_CERTS });
      return !Object.keys(data).some(key => key.includes('master-2'));
    });
    // It goes into a new revision, and the cluster is closed while that is being installed.
    await cluster.until('an installer', () => cluster.nodes.some(({ revision: found }) => found > settled));
  });

  async function areAllOfTheSignerInUse(): Promise<boolean> {
    const read = async (namespace: string, name: string) =>
      loadSecret(await cluster.kube.get(SECRETS, { namespace, name })).chain[0] as Certificate;
    const inUse = await read(CONFIG_NAMESPACE, 'etcd-signer');
    const leaves = await Promise.all(cluster.nodes.map(({ name }) => read(ETCD_NAMESPACE, `etcd-peer-${name}`)));
    return leaves.every(leaf => isIssuedBy(leaf, inUse));
  }

  /** The nodes whose running revision would refuse a leaf. */
  async function notTrustedBy(secret: Secret): Promise<string[]> {
    const [leaf] = readCertificates(Buffer.from(secret.data?.[TLS_CERT] ?? '', 'base64').toString()).certificates;
    const { status = {} } = await cluster.kube.get(ETCDS, CLUSTER);
    const running = (status.nodeStatuses ?? []).filter(({ currentRevision }) => (currentRevision ?? 0) > 0);
    const refusing = await Promise.all(
      running.map(async ({ nodeName, currentRevision }) => {
        const name = `${ALL_BUNDLES}-${currentRevision}`;
        const copy = await cluster.kube.get(CONFIG_MAPS, { namespace: ETCD_NAMESPACE, name });
        const { certificates } = readCertificates(copy.data?.['server-ca-bundle.crt'] ?? '');
        const trusts = leaf !== undefined && certificates.some(authority => isIssuedBy(leaf, authority));
        return trusts ? [] : [`${nodeName} at revision ${currentRevision} refuses ${secret.metadata?.name}`];
      }),
    );
    return refusing.flat();
  }

  async function clean(now: Date): Promise<void> {
    const { signal } = new AbortController();
    const context = { signal, clock: new VirtualClock(now), events: recordingEvents(), log: silentLog, enqueue() {} };
    await certCleanerReconcile(cluster.kube)('key', context);
  }
});

function isIssuedBy(leaf: Certificate, authority: Certificate): boolean {
  return new X509Certificate(leaf.der).verify(new X509Certificate(authority.der).publicKey);
}
