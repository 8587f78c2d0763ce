import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { before, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { VirtualClock } from '../kube/clock.ts';
import { days } from '../kube/duration.ts';
import { ConnectionError } from '../kube/error.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { objectsOfCluster } from './artefact.ts';
import type { EdgeReport } from './edge-counter.ts';
import type { Edge, Side } from './graph.ts';
import { configMap, objectText, secret } from './object.ts';
import { Prober, type Route } from './prober.ts';

const PAIR = secret('ns', 'pair');
const BUNDLE = configMap('ns', 'bundle');
const NAME = 'server.example';

const pem = ({ chain }: CertificateAndKey) => encodeCertificates(chain);
const base64 = (text: string) => Buffer.from(text).toString('base64');
const pairData = (pair: CertificateAndKey) => ({
  'tls.crt': base64(pem(pair)),
  'tls.key': base64(encodePrivateKey(pair.key)),
});

/** A server that checks clients with `ca`, strictly or by telling them, and a prober that has the objects it is given. */
class World {
  readonly objects = new Map<string, { data: Record<string, string> }>();
  readonly server: Server;
  routes: readonly Route[] | string = [];
  /** The API cannot be asked for objects. */
  isAway = false;

  constructor(serving: CertificateAndKey, ca: string, { isStrict = false, status = 200 } = {}) {
    this.server = createServer(
      {
        cert: pem(serving),
        key: encodePrivateKey(serving.key),
        ca,
        requestCert: true,
        rejectUnauthorized: isStrict,
      },
      (request, response) => {
        const { authorized } = request.socket as TLSSocket;
        response
          .writeHead(authorized ? 200 : status)
          .end(status === 200 ? JSON.stringify({ trusted: authorized }) : '');
      },
    );
  }

  async listen(): Promise<void> {
    await new Promise<void>(done => this.server.listen(0, '127.0.0.1', done));
    this.routes = [{ from: 'anywhere', host: '127.0.0.1', port: (this.server.address() as AddressInfo).port }];
  }

  close(): Promise<void> {
    return new Promise(done => this.server.close(() => done()));
  }

  prober(client: Partial<Side> = {}, serverName: string | undefined = NAME): Prober {
    const edge: Edge = {
      name: 'edge',
      client: {
        process: 'c',
        nodes: 'anywhere',
        presents: { object: PAIR },
        verifiesWith: { object: BUNDLE },
        ...client,
      },
      server: { process: 's', nodes: 'anywhere', endpoint: { url: 'https://<somewhere>:443', serverName } },
    };
    return new Prober({
      graph: { deliveries: [], flows: [], edges: [edge] },
      routes: () => this.routes,
      read: objectsOfCluster(async object => {
        if (this.isAway) throw new ConnectionError('UND_ERR_SOCKET', 'other side closed');
        return this.objects.get(objectText(object));
      }),
      clock: new VirtualClock(new Date()),
    });
  }

  hold(object: typeof PAIR, data: Record<string, string>): void {
    this.objects.set(objectText(object), { data });
  }
}

function only(prober: Prober): EdgeReport {
  const [report] = prober.snapshot().edges;
  assert.ok(report);
  return report;
}

async function oneRound(prober: Prober): Promise<EdgeReport> {
  await prober.probe();
  return only(prober);
}

describe('a connection over an edge', () => {
  const issue = { keys: systemKeys, algorithm: 'P-256', now: new Date(), lifetimeMs: days(1) } as const;
  let [ca, other, serving, client, stranger, expired]: CertificateAndKey[] = [];
  before(async () => {
    ca = await issueSigner({ ...issue, commonName: 'ca' });
    other = await issueSigner({ ...issue, commonName: 'other' });
    serving = await issueServing({ ...issue, signer: ca, hostnames: [NAME] });
    client = await issueClient({ ...issue, signer: ca, user: { name: 'me' } });
    stranger = await issueClient({ ...issue, signer: other, user: { name: 'me' } });
    const past = { ...issue, now: new Date(Date.now() - days(10)) };
    const pastCa = await issueSigner({ ...past, lifetimeMs: days(20), commonName: 'past' });
    expired = await issueServing({ ...past, signer: pastCa, hostnames: [NAME] });
    pastBundle = pem(pastCa);
  });
  let pastBundle = '';

  async function started(t: { after(done: () => unknown): void }, options = {}, server = serving): Promise<World> {
    const world = new World(server!, pem(ca!), options);
    await world.listen();
    t.after(() => world.close());
    world.hold(PAIR, pairData(client!));
    world.hold(BUNDLE, { 'ca-bundle.crt': pem(ca!) });
    return world;
  }

  test('is accepted when both sides have what they need', async t => {
    const world = await started(t);
    const report = await oneRound(world.prober());
    assert.deepEqual([report.accepted, report.refused, report.unreachable], [1, 0, 0]);
    assert.ok(report.lastAcceptedAt);
  });

  test('goes on with what was read last while the API is away; before anything was read, it says nothing about trust', async t => {
    const world = await started(t);
    const [known, fresh] = [world.prober(), world.prober()];
    await oneRound(known);
    world.isAway = true;
    const report = await oneRound(known);
    assert.deepEqual([report.accepted, report.refused, report.unreachable], [2, 0, 0]);
    const nothing = await oneRound(fresh);
    assert.deepEqual([nothing.accepted, nothing.refused, nothing.unreachable], [0, 0, 1]);
  });

  test('without a certificate only the server is checked', async t => {
    const world = await started(t);
    const report = await oneRound(world.prober({ presents: 'token' }));
    assert.deepEqual([report.accepted, report.refused], [1, 0]);
  });

  for (const [what, options] of [
    ['a server that says so', {}],
    ['a server that answers 401', { status: 401 }],
    ['a server that ends the connection', { isStrict: true }],
  ] as const) {
    test(`is refused by ${what}, where it does not know the signer of the client`, async t => {
      const world = await started(t, options);
      world.hold(PAIR, pairData(stranger!));
      const report = await oneRound(world.prober());
      assert.deepEqual([report.accepted, report.refused], [0, 1]);
      assert.equal(report.refusals[0]?.by, 'server');
    });
  }

  test('is refused by a client that does not know the signer of the server, or another name', async t => {
    const world = await started(t);
    world.hold(BUNDLE, { 'ca-bundle.crt': pem(other!) });
    assert.equal((await oneRound(world.prober())).refusals[0]?.by, 'client');
    world.hold(BUNDLE, { 'ca-bundle.crt': pem(ca!) });
    const report = await oneRound(world.prober({}, 'another.example'));
    assert.equal(report.refusals[0]?.reason, 'ERR_TLS_CERT_ALTNAME_INVALID');
  });

  test('is refused when the certificate of the server has ended', async t => {
    const world = await started(t, {}, expired);
    world.hold(BUNDLE, { 'ca-bundle.crt': pastBundle });
    const report = await oneRound(world.prober());
    assert.deepEqual([report.refusals[0]?.by, report.refusals[0]?.reason], ['client', 'CERT_HAS_EXPIRED']);
  });

  test('a pair in the middle of being written leaves the old in use; one that never fitted is a refusal without content', async t => {
    const world = await started(t);
    const prober = world.prober();
    await prober.probe();
    world.hold(PAIR, { ...pairData(client!), 'tls.key': pairData(stranger!)['tls.key'] });
    assert.deepEqual([(await oneRound(prober)).accepted, only(prober).refused], [2, 0]);
    const fresh = await oneRound(world.prober());
    assert.match(fresh.refusals[0]?.reason ?? '', /does not belong to the certificate/);
    assert.ok(!JSON.stringify(fresh).includes('PRIVATE'));
  });

  test('nobody there is no question of trust, and neither is an edge that nobody travels', async t => {
    const world = await started(t);
    const prober = world.prober();
    const { routes } = world;
    world.routes = 'no such server here';
    assert.equal((await oneRound(prober)).skipped, 'no such server here');
    world.routes = [{ ...(routes as Route[])[0]!, port: 1 }];
    const report = await oneRound(prober);
    assert.deepEqual([report.refused, report.unreachable, report.skipped], [0, 1, undefined]);
    assert.match(report.silences[0]?.to ?? '', /^127\.0\.0\.1:\d+$/);
    assert.equal(report.silences[0]?.reason, 'ECONNREFUSED');
  });

  test('it goes on until it is stopped, one round after the other', async t => {
    const world = await started(t);
    const prober = new Prober({
      graph: { deliveries: [], flows: [], edges: [] },
      routes: () => world.routes,
      read: async () => undefined,
      pauseMs: 1,
    });
    prober.start();
    while (prober.snapshot().rounds < 3) await new Promise(setImmediate);
    await prober.stop();
    const { rounds } = prober.snapshot();
    await new Promise(setImmediate);
    assert.equal(prober.snapshot().rounds, rounds);
  });
});
