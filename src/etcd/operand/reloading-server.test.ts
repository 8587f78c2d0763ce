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
  const ask = async (t: TestContext, address: string, at: string) => {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-etcd-'));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const issued = { lifetimeMs: days(1), now: NOW, keys: systemKeys, algorithm: 'P-256' } as const;
    const signer = await issueSigner({ ...issued, commonName: 'ca' });
    const pair = await issueServing({ ...issued, signer, hostnames: ['localhost'] });
    const files = { cert: join(dir, 'tls.crt'), key: join(dir, 'tls.key') };
    writeFileSync(files.cert, encodeCertificates(pair.chain));
    writeFileSync(files.key, encodePrivateKey(pair.key));
    const server = await startReloadingServer(
      { address, port: 0 },
      files,
      (_, response) => response.end('here'),
      silentLog,
    );
    t.after(() => server.stop());
    const { port } = new URL(server.url);
    const answer = Promise.withResolvers<string>();
    const options = { host: at, port, rejectUnauthorized: false, agent: false };
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
      assert.equal(await ask(t, address, at), 'here');
    });
  }
});
