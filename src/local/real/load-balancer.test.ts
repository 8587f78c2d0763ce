import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { days } from '../../kube/duration.ts';
import { issueServing, issueSigner } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { type Backend, startLoadBalancer } from './load-balancer.ts';

test('connections go to servers that are ready, one after the other, and past one that is gone', async t => {
  const [first, second] = [await startServer(t, 'first'), await startServer(t, 'second')];
  const balancer = await startLoadBalancer({ backends: [first, second] });
  t.after(() => balancer.close());
  assert.equal(balancer.ready().length, 2);
  assert.deepEqual(new Set([await answer(balancer), await answer(balancer)]), new Set(['first', 'second']));

  await first.stop();
  // Also before anybody has noticed.
  for (let n = 0; n < 4; n++) assert.equal(await answer(balancer), 'second');
});

test('a server that says it is about to end gets no new connection while another is ready', async t => {
  const [first, second] = [await startServer(t, 'first'), await startServer(t, 'second')];
  first.isReady = false;
  const balancer = await startLoadBalancer({ backends: [first, second] });
  t.after(() => balancer.close());
  assert.deepEqual(balancer.ready(), [second]);
  for (let n = 0; n < 4; n++) assert.equal(await answer(balancer), 'second');
});

test('where nobody is ready, whoever takes the connection gets it', async t => {
  const only = await startServer(t, 'only');
  only.isReady = false;
  const balancer = await startLoadBalancer({ backends: [only] });
  t.after(() => balancer.close());
  assert.equal(await answer(balancer), 'only');
});

test('one that is silent keeps nobody from noticing what becomes of the others', async t => {
  const other = await startServer(t, 'other');
  const silent = await startSilent(t);
  const balancer = await startLoadBalancer({ backends: [silent, other] });
  t.after(() => balancer.close());
  let most = 0;
  for (let question = 0; most < 2 && question < 5; question++) {
    const before = other.asked;
    await silent.next();
    most = Math.max(most, other.asked - before);
  }
  assert.ok(most >= 2, 'the other one was asked once during a question to the silent one');
});

interface TestServer extends Backend {
  /** How often it was asked whether it is ready. */
  asked: number;
  isReady: boolean;
  stop(): Promise<void>;
}

async function startServer(t: TestContext, name: string): Promise<TestServer> {
  const issuing = { keys: systemKeys, now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' } as const;
  const signer = await issueSigner({ ...issuing, commonName: 'ca' });
  const { chain, key } = await issueServing({ ...issuing, signer, hostnames: ['localhost'] });
  const server: Server = createServer(
    { cert: encodeCertificates(chain), key: encodePrivateKey(key) },
    (asked, reply) => {
      if (asked.url === '/readyz') backend.asked++;
      if (asked.url === '/readyz') reply.statusCode = backend.isReady ? 200 : 500;
      reply.end(name);
    },
  );
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const backend: TestServer = {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    isReady: true,
    asked: 0,
    async stop() {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
  t.after(() => backend.stop());
  return backend;
}

/** Takes connections and says no word. */
async function startSilent(t: TestContext): Promise<Backend & { next(): Promise<unknown> }> {
  const server = createTcpServer(socket => {
    const answerless = socket.on('error', () => {}).resume();
    answerless.once('close', () => server.emit('question'));
    t.after(() => answerless.destroy());
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { host: '127.0.0.1', port, next: () => once(server, 'question') };
}

function answer({ host, port }: Backend): Promise<string> {
  return new Promise((resolve, reject) => {
    request({ host, port, path: '/', rejectUnauthorized: false, agent: false }, reply => {
      let text = '';
      reply.setEncoding('utf8').on('data', chunk => (text += chunk));
      reply.once('end', () => resolve(text));
    })
      .once('error', reject)
      .end();
  });
}
