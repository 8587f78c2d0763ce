import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { connect } from 'node:tls';
import { VirtualClock } from '../kube/clock.ts';
import { days } from '../kube/duration.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import { issueServing, issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { type Api, type ApiOptions, StoreLockedError, startApi } from './api.ts';

describe('startApi', () => {
  let dir: string;
  const running: Api[] = [];

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-api-'));
  });
  afterEach(async () => {
    for (const api of running.splice(0)) await api.close();
    rmSync(dir, { recursive: true, force: true });
  });

  async function start(options: ApiOptions = { dir }): Promise<Api> {
    const api = await startApi(options);
    running.push(api);
    return api;
  }

  async function stop(): Promise<void> {
    for (const api of running.splice(0)) await api.close();
  }

  it('keeps objects, versions and credentials from one start to the next', async () => {
    const first = await start();
    const created = await first.kube.create(CONFIG_MAPS, {
      metadata: { name: 'kept', namespace: 'default' },
      data: { a: 'b' },
    });
    const { kubeconfig } = first;
    await stop();
    const second = await start();
    assert.deepEqual(await second.kube.get(CONFIG_MAPS, { name: 'kept', namespace: 'default' }), created);
    const next = await second.kube.create(CONFIG_MAPS, { metadata: { name: 'next', namespace: 'default' } });
    assert.ok(Number(next.metadata?.resourceVersion) > Number(created.metadata?.resourceVersion));
    const withoutAddress = (text: string) => text.replace(/server: .*/, '');
    assert.equal(withoutAddress(second.kubeconfig), withoutAddress(kubeconfig));
    assert.equal(readFileSync(join(dir, 'kubeconfig'), 'utf8'), second.kubeconfig);
  });

  it('keeps everything to itself', async () => {
    await start();
    const secretFiles = [
      'kubeconfig',
      'store.sqlite',
      'pki/serving.key',
      'pki/client-ca.key',
      'pki/service-account.key',
    ];
    for (const file of secretFiles) assert.equal(statSync(join(dir, file)).mode & 0o777, 0o600, file);
  });

  it('does not share its directory', async () => {
    await start();
    await assert.rejects(startApi({ dir }), StoreLockedError);
  });

  it('replaces what is about to expire, and keeps its authorities', async () => {
    const clock = new VirtualClock(new Date());
    const first = await start({ dir, clock });
    const before = await shownCertificate(first);
    await stop();
    await clock.advance(days(340));
    const second = await start({ dir, clock });
    assert.notEqual(await shownCertificate(second), before);
    const ca = (kubeconfig: string) => /certificate-authority-data: (.*)/.exec(kubeconfig)?.[1];
    assert.equal(ca(second.kubeconfig), ca(first.kubeconfig));
  });

  it('shows another certificate from the next handshake on', async () => {
    const api = await start({});
    const common = { keys: systemKeys, now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' } as const;
    const signer = await issueSigner({ ...common, commonName: 'another' });
    const serving = await issueServing({ ...common, signer, hostnames: ['swapped.example'] });
    const before = await shownCertificate(api);
    api.setServing({ cert: encodeCertificates(serving.chain), key: encodePrivateKey(serving.key) });
    const after = await shownCertificate(api);
    assert.notEqual(after, before);
    assert.equal(after, serving.chain[0]?.der.toString('hex'));
  });

  it('says whom it trusts, for the servers behind it', async () => {
    const api = await start();
    const key = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };
    const published = async () => (await api.kube.get(CONFIG_MAPS, key)).data?.['client-ca-file'] ?? '';
    const own = await published();
    assert.match(own, /^-----BEGIN CERTIFICATE-----/);
    const options = { keys: systemKeys, now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' as const };
    const other = encodeCertificates((await issueSigner({ ...options, commonName: 'other' })).chain);
    api.setClientCas(other);
    while ((await published()) !== own + other) await new Promise(resolve => setImmediate(resolve));
  });

  it('cleans up after a start that failed', async () => {
    const api = await start();
    const port = Number(new URL(api.url).port);
    await assert.rejects(startApi({ dir: join(dir, 'other'), port }), /EADDRINUSE/);
    const other = await start({ dir: join(dir, 'other') });
    assert.ok(other.url);
  });
});

function shownCertificate({ url }: Api): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = connect(
      { host: hostname, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ['h2'] },
      () => {
        resolve(socket.getPeerCertificate().raw.toString('hex'));
        socket.destroy();
      },
    );
    socket.on('error', reject);
  });
}
