import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import { days } from '../../kube/duration.ts';
import { issueServing, issueSigner } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { NOW } from '../testing.ts';
import { startReloadingServer } from './reloading-server.ts';

describe('the side programs listen', () => {
  const started = async (t: TestContext, address: string, answer: Parameters<typeof startReloadingServer>[2]) => {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-etcd-'));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const issued = { lifetimeMs: days(1), now: NOW, keys: systemKeys, algorithm: 'P-256' } as const;
    const signer = await issueSigner({ ...issued, commonName: 'ca' });
    const pair = await issueServing({ ...issued, signer, hostnames: ['localhost'] });
    const files = { cert: join(dir, 'tls.crt'), key: join(dir, 'tls.key') };
    writeFileSync(files.cert, encodeCertificates(pair.chain));
    writeFileSync(files.key, encodePrivateKey(pair.key));
    const server = await startReloadingServer({ address, port: 0 }, files, answer, silentLog);
    t.after(() => server.stop());
    return new URL(server.url).port;
  };
  const ask = (port: string, at: string, path = '/') => {
    const answer = Promise.withResolvers<string>();
    const options = { host: at, port, path, rejectUnauthorized: false, agent: false };
    get(options, response => response.once('data', data => answer.resolve(String(data)))).on('error', answer.reject);
    return answer.promise;
  };
  const isIPv6Here = Object.values(networkInterfaces()).some(list => list?.some(({ address }) => address === '::1'));
  for (const [address, at] of [
    ['0.0.0.0', '127.0.0.1'],
    ['0.0.0.0', '::1'],
    ['::', '127.0.0.1'],
    ['[::]', '::1'],
    ['[::1]', '::1'],
    ['127.0.0.1', '127.0.0.1'],
  ] as const) {
    test(`told ${address}, at ${at} (A-6, P-5)`, async t => {
      if (`${address}${at}`.includes('::') && !isIPv6Here) return t.skip('this machine has no IPv6');
      const port = await started(t, address, (_, response) => response.end('here'));
      assert.equal(await ask(port, at), 'here');
    });
  }

  test('a request that trips up who answers it ends that request alone', async t => {
    const port = await started(t, '127.0.0.1', ({ url = '' }, response) => {
      response.end(new URL(url, 'https://localhost').pathname);
    });
    await assert.rejects(ask(port, '127.0.0.1', '//'));
    assert.equal(await ask(port, '127.0.0.1', '/metrics'), '/metrics');
  });
});
