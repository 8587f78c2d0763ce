import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { load } from 'js-yaml';
import { startEngine } from '../../api/api.ts';
import { silentLog } from '../../controller/log.ts';
import { days, minutes } from '../../kube/duration.ts';
import { decodeDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import { readIgnition } from '../../machine-config-api/ignition/read.ts';
import { MACHINE_CONFIG_POOLS } from '../../machine-config-api/machine-config.ts';
import { MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import { issueServing, issueSigner } from '../../pki/issue.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { certificate, NOW, TestCluster } from '../testing.ts';
import { type MachineConfigServer, startMachineConfigServer } from './server.ts';

const IGNITION_3_4 = 'application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1';

describe('the machine-config server', () => {
  let cluster: TestCluster;
  let server: MachineConfigServer;
  let ca: string;
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-mcs-'));
  const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  const writePair = async (seed: string) => {
    const options = { now: NOW, lifetimeMs: days(3650), algorithm: 'P-256' as const };
    const signer = await issueSigner({ ...options, keys: seededKeys('mcs-ca'), commonName: 'root-ca' });
    const serving = await issueServing({ ...options, keys: seededKeys(seed), signer, hostnames: ['localhost'] });
    writeFileSync(certFile, encodeCertificates(serving.chain));
    writeFileSync(keyFile, encodePrivateKey(serving.key));
    return encodeCertificates(signer.chain);
  };
  const ask = (path: string, { method = 'GET', accept = IGNITION_3_4 } = {}) =>
    new Promise<{ status: number; length: string; body: string; serial: string }>((resolve, reject) => {
      const call = request(
        { host: 'localhost', port: server.port, path, method, ca, agent: false, headers: { accept } },
        response => {
          const serial = (response.socket as TLSSocket).getPeerCertificate().serialNumber;
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              length: response.headers['content-length'] ?? '',
              body: Buffer.concat(parts).toString('utf8'),
              serial,
            }),
          );
        },
      );
      call.on('error', reject);
      call.end();
    });

  before(async () => {
    ca = await writePair('one');
    cluster = await TestCluster.create(clock => startEngine({ clock }));
    cluster.startOperator();
    cluster.startController();
    await cluster.until('rendered', async () => (await cluster.rendered('worker')).length === 1, minutes(2));
    server = await startMachineConfigServer({
      kube: cluster.kube,
      log: silentLog,
      apiServerUrl: 'https://api-int.c1.example.com:6443',
      certFile,
      keyFile,
      host: 'localhost',
      port: 0,
    });
  });
  after(async () => {
    await server.stop();
    await cluster.stop();
    rmSync(folder, { recursive: true });
  });

  test('says what is missing by a status, and nothing else', async () => {
    assert.deepEqual(await ask('/config/worker').then(({ status, body }) => [status, body]), [500, '']);
    assert.equal((await ask('/config/nowhere')).status, 500);
  });

  test('gives a machine the rendered config with the CAs and the kubeconfig of now (MS-3 to MS-5)', async () => {
    await cluster.setSecret(MCO_NAMESPACE, 'node-bootstrapper-token', 'Opaque', { token: 'geheim', 'ca.crt': 'old' });
    await cluster.pass(minutes(1));
    const [name] = await cluster.rendered('worker');
    const pool = await cluster.pool('worker');
    assert.equal(pool.status?.configuration?.name, name);
    const { status, body } = await ask('/config/worker');
    assert.equal(status, 200);
    const files = readIgnition(JSON.parse(body))?.storage?.files ?? [];
    const text = (path: string) =>
      decodeDataUrl(files.find(file => file.path === path)?.contents?.source ?? '')?.toString('utf8') ?? '';
    assert.equal(text('/etc/kubernetes/kubelet-ca.crt'), await certificate('client-ca'));
    assert.match(text('/etc/machine-config-daemon/node-annotations.json'), new RegExp(`currentConfig":"${name}"`));
    const kubeconfig = load(text('/etc/kubernetes/kubeconfig')) as {
      users: { user: { token: string } }[];
      clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
    };
    assert.equal(kubeconfig.users[0]?.user.token, 'geheim');
    assert.equal(kubeconfig.clusters[0]?.cluster.server, 'https://api-int.c1.example.com:6443');
    const trusted = Buffer.from(kubeconfig.clusters[0]?.cluster['certificate-authority-data'] ?? '', 'base64');
    assert.equal(trusted.toString('utf8'), await certificate('server-ca'));
    assert.equal(files.at(-1)?.path, '/etc/ignition-machine-config-encapsulated.json');
  });

  test('fresh CAs also while the pool is paused (MS-4)', async () => {
    await cluster.kube.patch(
      MACHINE_CONFIG_POOLS,
      { name: 'worker' },
      { type: 'merge', body: { spec: { paused: true } } },
    );
    await cluster.setConfigMap('openshift-config-managed', 'kube-apiserver-client-ca', {
      'ca-bundle.crt': await certificate('fresh-client-ca'),
    });
    await cluster.pass(minutes(1));
    const files = readIgnition(JSON.parse((await ask('/config/worker')).body))?.storage?.files ?? [];
    const served = files.find(({ path }) => path === '/etc/kubernetes/kubelet-ca.crt')?.contents?.source ?? '';
    assert.equal(decodeDataUrl(served)?.toString('utf8'), await certificate('fresh-client-ca'));
  });

  const table: [method: string, path: string, accept: string, status: number][] = [
    ['GET', '/healthz', '*/*', 200],
    ['POST', '/config/worker', IGNITION_3_4, 405],
    ['DELETE', '/healthz', '*/*', 405],
    ['GET', '/config/worker', 'application/vnd.coreos.ignition+json;version=3.0.0', 400],
    ['GET', '/config/', IGNITION_3_4, 404],
    ['GET', '/config/../secrets', IGNITION_3_4, 404],
    ['GET', '/config/%2e%2e%2fx', IGNITION_3_4, 404],
    ['GET', '//', IGNITION_3_4, 404],
    ['GET', '/config/worker?x=1', IGNITION_3_4, 200],
    ['GET', '/config/worker', '*/*', 200],
  ];
  for (const [method, path, accept, status] of table) {
    test(`${method} ${path} with ${accept} gets ${status} (MS-1, MS-2)`, async () => {
      assert.equal((await ask(path, { method, accept })).status, status);
    });
  }

  test('HEAD tells the size alone', async () => {
    const [head, get] = [await ask('/config/worker', { method: 'HEAD' }), await ask('/config/worker')];
    assert.equal(head.body, '');
    assert.equal(head.length, get.length);
  });

  test('a new certificate serves the next connection, half a pair changes nothing (MS-6)', async () => {
    const { serial } = await ask('/healthz');
    writeFileSync(keyFile, 'not a key');
    assert.equal((await ask('/healthz')).serial, serial);
    await writePair('two');
    assert.notEqual((await ask('/healthz')).serial, serial);
  });
});
