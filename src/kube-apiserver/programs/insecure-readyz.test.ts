import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import { createRegistry } from '../../controller/metrics.ts';
import { systemClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { issueServing, issueSigner } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { parseInsecureReadyzOptions, startInsecureReadyz } from './insecure-readyz.ts';
import { startSecureHealth } from './secure-health.ts';

test('what kube-apiserver says goes through, good and bad; its certificate does not matter', async t => {
  let ready = true;
  const delegateUrl = await backend(t, () => (ready ? [200, 'ok'] : [500, '[-]etcd failed']));
  const proxy = await startInsecureReadyz({ port: 0, host: '127.0.0.1', delegateUrl }, silentLog);
  t.after(() => proxy.stop());
  const ask = async (path: string, method = 'GET') => {
    const answer = await fetch(`http://127.0.0.1:${proxy.port}${path}`, { method });
    return [answer.status, await answer.text()] as const;
  };
  assert.deepEqual(await ask('/readyz'), [200, 'ok']);
  ready = false;
  assert.deepEqual(await ask('/readyz'), [500, '[-]etcd failed']);
  assert.equal((await ask('/metrics'))[0], 404);
  assert.equal((await ask('/readyz', 'POST'))[0], 405);
});

test('a server that is not there is not ready', async t => {
  const proxy = await startInsecureReadyz(
    { port: 0, host: '127.0.0.1', delegateUrl: 'https://127.0.0.1:1/readyz' },
    silentLog,
  );
  t.after(() => proxy.stop());
  const answer = await fetch(`http://127.0.0.1:${proxy.port}/readyz`);
  assert.deepEqual([answer.status, await answer.text()], [500, "couldn't contact kube-apiserver\n"]);
});

test('flags as upstream', () => {
  assert.deepEqual(parseInsecureReadyzOptions([]), { port: 6080, delegateUrl: 'https://localhost:6443/readyz' });
  assert.deepEqual(parseInsecureReadyzOptions(['--insecure-port=1', '--delegate-url', 'https://x/y']), {
    port: 1,
    delegateUrl: 'https://x/y',
  });
  assert.throws(() => parseInsecureReadyzOptions(['--insecure-port=0']), /between 1 and 65535/);
  assert.throws(() => parseInsecureReadyzOptions(['--delegate-url=nonsense']), /must be a URL/);
});

test('the health of check-endpoints is served over TLS, with metrics', async t => {
  const registry = createRegistry();
  const health = await startSecureHealth({
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    keys: systemKeys,
    registry,
  });
  t.after(() => health.stop());
  const proxy = await startInsecureReadyz(
    { port: 0, host: '127.0.0.1', delegateUrl: `https://127.0.0.1:${health.port}/healthz` },
    silentLog,
  );
  t.after(() => proxy.stop());
  assert.equal(await (await fetch(`http://127.0.0.1:${proxy.port}/readyz`)).text(), 'ok');
  // A path that is no URL is no reason to end.
  const odd = await startInsecureReadyz(
    { port: 0, host: '127.0.0.1', delegateUrl: `https://127.0.0.1:${health.port}//` },
    silentLog,
  );
  t.after(() => odd.stop());
  assert.equal((await fetch(`http://127.0.0.1:${odd.port}/readyz`)).status, 404);
});

async function backend(t: TestContext, answer: () => [number, string]): Promise<string> {
  const common = { keys: systemKeys, now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' } as const;
  const signer = await issueSigner({ ...common, commonName: 'nobody knows it' });
  const serving = await issueServing({ ...common, signer, hostnames: ['elsewhere.example'] });
  const server = createServer(
    { cert: encodeCertificates(serving.chain), key: encodePrivateKey(serving.key) },
    (_, response) => {
      const [status, text] = answer();
      response.writeHead(status).end(text);
    },
  );
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.after(
    () =>
      new Promise<void>(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/readyz`;
}
