import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { withCertificate } from '../../certrotation/secret.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { hours, seconds } from '../../kube/duration.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../../kube/resource.ts';
import { issueClient, issueServing, issueSigner } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import type { MemberHealth } from '../quorum/member.ts';
import { FakeMembers } from '../quorum/testing.ts';
import { NOW } from '../testing.ts';
import { readEndpoints } from './endpoints.ts';
import { GatewayClient } from './gateway.ts';
import { materialFromCluster } from './material.ts';
import { cachedMembers, EtcdGateway } from './members.ts';
import { type ClientKind, ClientPool, MOST_IDLE_CLIENTS, MOST_OPEN_CLIENTS } from './pool.ts';

describe('the pool of clients', () => {
  function pool(changes: Partial<ClientKind<{ id: number; endpoints: readonly string[] }>> = {}) {
    const clock = new VirtualClock(NOW);
    const calls = { create: 0, check: 0, close: 0 };
    const made = new ClientPool<{ id: number; endpoints: readonly string[] }>(
      {
        endpoints: async () => ['https://a'],
        create: async endpoints => ({ id: ++calls.create, endpoints }),
        redirect: (client, endpoints) => {
          client.endpoints = endpoints;
        },
        check: async () => void calls.check++,
        close: async () => void calls.close++,
        ...changes,
      },
      clock,
    );
    return { made, clock, calls };
  }
  const pauses = async <T>(clock: VirtualClock, work: Promise<T>): Promise<T> => {
    let isOver = false;
    const over = () => (isOver = true);
    work.then(over, over);
    while (!isOver) {
      const next = clock.nextWait();
      if (next === undefined) await new Promise(resolve => setImmediate(resolve));
      else await clock.advanceTo(next);
    }
    return work;
  };

  test('keeps ten idle ones and closes the rest', async () => {
    const { made, calls } = pool();
    const clients = await Promise.all(Array.from({ length: MOST_OPEN_CLIENTS }, () => made.get()));
    for (const client of clients) made.return(client);
    assert.equal(calls.close, MOST_OPEN_CLIENTS - MOST_IDLE_CLIENTS);
    for (let n = 0; n < MOST_OPEN_CLIENTS; n++) await made.get();
    assert.equal(calls.create, MOST_OPEN_CLIENTS + MOST_IDLE_CLIENTS);
  });

  test('a request that waits gets the next client that comes back', async () => {
    const { made, clock, calls } = pool();
    const clients = await Promise.all(Array.from({ length: MOST_OPEN_CLIENTS }, () => made.get()));
    const waiting = made.get();
    await clock.advance(seconds(4));
    made.return(clients[0] as { id: number; endpoints: string[] });
    assert.equal((await waiting).id, 1);
    assert.equal(calls.create, MOST_OPEN_CLIENTS);
    await assert.rejects(pauses(clock, made.get()), /too many active cache clients/);
  });

  test('never more than twenty are open, whoever comes between the one that is freed and the one that waits for it (Q-7)', async () => {
    const { made, clock, calls } = pool();
    const clients = await Promise.all(Array.from({ length: MOST_OPEN_CLIENTS }, () => made.get()));
    const waiting = Array.from({ length: 3 }, () => made.get());
    await new Promise(resolve => setImmediate(resolve));
    for (const client of clients.splice(0, 3)) {
      const later = made.get();
      await Promise.resolve();
      made.return(client);
      waiting.push(later);
    }
    const outcomes = Promise.allSettled(waiting);
    await pauses(clock, outcomes);
    assert.equal(calls.create - calls.close, MOST_OPEN_CLIENTS);
    assert.equal((await outcomes).filter(({ status }) => status === 'fulfilled').length, 3);
  });

  test('one that was lent while certificates rotated is not lent again', async () => {
    const old = new Set<number>();
    const { made, calls } = pool({ isCurrent: ({ id }) => !old.has(id) });
    const client = await made.get();
    old.add(client.id);
    made.return(client);
    assert.equal(calls.close, 1);
    assert.equal((await made.get()).id, 2);
  });

  test('one that is not healthy is closed and another one made, three times at most', async () => {
    let failures = 1;
    const { made, clock, calls } = pool({
      check: async () => {
        if (failures-- > 0) throw new Error('no');
      },
    });
    assert.equal((await pauses(clock, made.get())).id, 2);
    assert.equal(calls.close, 1);
    failures = 3;
    const start = clock.now().getTime();
    await assert.rejects(pauses(clock, made.get()), /giving up getting a cached client after 3 tries: no/);
    assert.equal(clock.now().getTime() - start, seconds(6));
  });

  test('endpoints that cannot be found out are no reason to try again; new ones reach idle clients', async () => {
    let url = 'https://a';
    const { made } = pool({
      endpoints: async () => {
        if (url === '') throw new Error('nobody knows');
        return [url];
      },
    });
    made.return(await made.get());
    url = 'https://b';
    const client = await made.get();
    assert.deepEqual([client.id, client.endpoints], [1, ['https://b']]);
    url = '';
    await assert.rejects(made.get(), /could not retrieve endpoints: nobody knows/);
  });
});

describe('cached members', () => {
  test('those who ask together share an answer; whoever wants a new one gets it; a failure is not kept', async () => {
    const clock = new VirtualClock(NOW);
    const source = new FakeMembers();
    source.add('a', '10.0.0.1');
    const cached = cachedMembers(source, clock);
    await Promise.all([cached.health(), cached.health()]);
    assert.equal(source.asked, 1);
    await cached.health({ maxAgeMs: 0 });
    assert.equal(source.asked, 2);
    await clock.advance(seconds(59));
    await cached.health();
    assert.equal(source.asked, 2);
    await clock.advance(seconds(1));
    source.failure = 'refused';
    await assert.rejects(cached.health(), /refused/);
    source.failure = undefined;
    assert.equal((await cached.health()).length, 1);
  });

  test('whoever is told to stop does not wait for the answer; others do', async () => {
    const answer = Promise.withResolvers<MemberHealth[]>();
    const cached = cachedMembers({ health: () => answer.promise }, new VirtualClock(NOW));
    const stop = new AbortController();
    const [told, other] = [cached.health({ signal: stop.signal }), cached.health()];
    stop.abort(new Error('stopping'));
    await assert.rejects(told, /stopping/);
    answer.resolve([]);
    assert.deepEqual(await other, []);
  });

  test('a question that was under way is not the answer for somebody who wants to know what is true now', async () => {
    const clock = new VirtualClock(NOW);
    const answers: ((health: MemberHealth[]) => void)[] = [];
    const cached = cachedMembers({ health: () => new Promise(resolve => answers.push(resolve)) }, clock);
    const first = cached.health();
    await clock.advance(seconds(5));
    const second = cached.health({ maxAgeMs: 0 });
    answers[0]?.([]);
    await first;
    await new Promise(resolve => setImmediate(resolve));
    assert.equal(answers.length, 2);
    answers[1]?.([]);
    await second;
  });
});

test('a call has one limit for all endpoints, and one that keeps silent leaves half of it to the others (Q-7)', async t => {
  const sockets: Socket[] = [];
  t.after(() => sockets.forEach(socket => socket.destroy()));
  const endpoints = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const silent = createServer(socket => sockets.push(socket.on('error', () => {})));
      t.after(() => silent.close());
      await once(silent.listen(0, '127.0.0.1'), 'listening');
      return `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    }),
  );
  // Time passes only where the client waits.
  const limits: number[] = [];
  let nowMs = performance.now();
  t.mock.method(performance, 'now', () => nowMs);
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    limits.push(ms);
    const limit = new AbortController();
    setImmediate(() => {
      nowMs += ms;
      limit.abort(new DOMException('too late', 'TimeoutError'));
    });
    return limit.signal;
  });
  const client = new GatewayClient(endpoints, { ca: '', cert: '', key: '' }, { requestMs: 300 });
  t.after(() => client.close());
  // A handshake that never ends does not hold it up.
  await assert.rejects(client.members(), error => endpoints.every(url => (error as Error).message.includes(url)));
  assert.deepEqual(limits, [150, 75, 75]);
});

test('etcd is asked over HTTP/1.1 although it prefers HTTP/2, where a call that is given up costs the process', async t => {
  const signer = await issueSigner({
    commonName: 'etcd',
    lifetimeMs: hours(1),
    now: new Date(),
    keys: systemKeys,
    algorithm: 'P-256',
  });
  const { chain, key } = await issueServing({
    signer,
    hostnames: ['127.0.0.1'],
    lifetimeMs: hours(1),
    now: new Date(),
    keys: systemKeys,
    algorithm: 'P-256',
  });
  const pair = { cert: encodeCertificates(chain), key: encodePrivateKey(key) };
  const protocols: (string | false | null)[] = [];
  const server = createTlsServer({ ...pair, ALPNProtocols: ['h2', 'http/1.1'] }, socket => {
    protocols.push(socket.alpnProtocol);
    socket.on('error', () => {}).destroy();
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new GatewayClient([url], { ca: encodeCertificates(signer.chain), ...pair });
  t.after(() => client.close());
  await assert.rejects(client.members());
  assert.deepEqual(new Set(protocols), new Set(['http/1.1']));
});

test('endpoints come from the ConfigMap, or from the nodes; certificates from the cluster, and never half of them', async () => {
  const kube = new MemoryKube();
  const labels = { 'node-role.kubernetes.io/master': '' };
  await kube.create(NODES, {
    metadata: { name: 'a', labels },
    status: { addresses: [{ type: 'InternalIP', address: 'fd00::1' }] },
  });
  assert.deepEqual(await readEndpoints(kube), ['https://[fd00::1]:2379']);
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: 'openshift-etcd', name: 'etcd-endpoints' },
    data: { '1': '10.0.0.1' },
  });
  assert.deepEqual(await readEndpoints(kube), ['https://10.0.0.1:2379']);

  const options = { keys: systemKeys, algorithm: 'P-256', now: NOW, lifetimeMs: seconds(60) } as const;
  const signer = await issueSigner({ ...options, commonName: 'ca' });
  const client = await issueClient({ ...options, signer, user: { name: 'etcd-client' } });
  const other = await issueClient({ ...options, signer, user: { name: 'other' } });
  const empty = { metadata: { namespace: 'openshift-etcd', name: 'etcd-client' }, type: 'kubernetes.io/tls' };
  const secret = await kube.create(SECRETS, withCertificate(empty, client, 'target', 1));
  const data = { 'ca-bundle.crt': encodeCertificates(signer.chain) };
  await kube.create(CONFIG_MAPS, { metadata: { namespace: 'openshift-etcd', name: 'etcd-ca-bundle' }, data });
  const material = materialFromCluster(kube);
  assert.match((await material()).cert, /BEGIN CERTIFICATE/);
  const mixed = { ...secret.data, 'tls.key': withCertificate(empty, other, 'target', 1).data?.['tls.key'] ?? '' };
  await kube.update(SECRETS, { ...secret, data: mixed });
  await assert.rejects(material(), /private key does not match/);
  const clock = new VirtualClock(NOW);
  const gateway = new EtcdGateway({ endpoints: async () => ['https://127.0.0.1:1'], material, clock });
  await assert.rejects(gateway.health(), /does not match/);
  await kube.delete(SECRETS, { namespace: 'openshift-etcd', name: 'etcd-client' });
  await assert.rejects(material(), { code: 404 });
  // The operator's own copies stay when the sources go (RS-2).
  const copy = { metadata: { namespace: 'openshift-etcd-operator', name: 'etcd-client' }, type: 'kubernetes.io/tls' };
  await kube.create(SECRETS, withCertificate(copy, client, 'target', 1));
  const { namespace, name } = { namespace: 'openshift-etcd-operator', name: 'etcd-ca-bundle' };
  await kube.create(CONFIG_MAPS, { metadata: { namespace, name }, data });
  await kube.delete(CONFIG_MAPS, { namespace: 'openshift-etcd', name: 'etcd-ca-bundle' });
  assert.equal((await material()).cert, encodeCertificates(client.chain));
  assert.equal((await material()).ca, data['ca-bundle.crt']);
});
