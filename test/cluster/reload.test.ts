/**
 * What a real kube-apiserver does when a file changes under it, compared with what `kube-apiserver/operand-objects.ts` says of the
 * flag: taken by the same process, or only by the next one.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { connect } from 'node:tls';
import { fixedAccess } from '../../src/kube/access.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { createIfMissing } from '../../src/kube/create-if-missing.ts';
import { objectPath } from '../../src/kube/path.ts';
import { NAMESPACES, NODES, PODS, resource, SERVICE_ACCOUNTS, SERVICES } from '../../src/kube/resource.ts';
import { OPERAND_OBJECTS } from '../../src/kube-apiserver/operand-objects.ts';
import { KUBERNETES_VERSION } from '../../src/local/real/built-programs.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import {
  authority,
  clientOf,
  FILES,
  type ListeningPeer,
  listenAs,
  pem,
  ReloadedServer,
  servingOf,
} from './real-reload.ts';

const binaries = findBinaries(['etcd', 'kube-apiserver']);
const skip = 'missing' in binaries ? binaries.missing : false;
const RECONNECT_MS = 5_000;
/** A file that is looked at again is looked at within a minute; what has not been taken by then is not taken. */
const NOT_TAKEN_MS = 65_000;
const ACCOUNT = { namespace: 'default', name: 'reload' };
const SNI = 'recovery.example';
/** kube-apiserver asks the kubelet for it. (The proxy to a node refuses loopback addresses.) */
const POD_LOG = '/api/v1/namespaces/default/pods/reload/log';
const API_SERVICES = resource('apiregistration.k8s.io/v1', 'APIService', 'apiservices', false);

describe(`kube-apiserver ${skip === false ? `${KUBERNETES_VERSION} ` : ''}and changed files`, { skip }, () => {
  let server: ReloadedServer;
  let admin: CertificateAndKey;
  let kube: HttpKube;
  before(async () => {
    server = await ReloadedServer.start(binaries as Binaries, SNI);
    admin = await clientOf(server.clientCa, 'admin', ['system:masters']);
    kube = kubeOf(admin);
  });
  after(async () => {
    await kube?.close();
    await server?.stop();
  });

  test('taken by the same process: serving certificates', async () => {
    assert.equal(takesOf('--tls-cert-file'), 'watch');
    assert.equal(takesOf('servingInfo.namedCertificates[4]'), 'watch');
    const { pid } = server;
    for (const [files, name] of [
      [FILES.serving, undefined],
      [FILES.sni, SNI],
    ] as const) {
      const old = await presented(name);
      const next = await servingOf(server.servingCa, [name ?? 'kubernetes', '127.0.0.1']);
      server.writePair(files, next);
      await eventually(`the new certificate of ${name ?? 'nobody in particular'}`, async () => {
        const now = await presented(name);
        return now !== old && now === serialOf(next);
      });
    }
    assert.equal(server.pid, pid);
    assert.ok(server.isRunning);
  });

  test('taken by the same process: whom it lets in, and which front proxies it believes', async () => {
    assert.equal(takesOf('--client-ca-file'), 'watch');
    assert.equal(takesOf('--requestheader-client-ca-file'), 'watch');
    const { pid } = server;
    const another = await authority('another-client-ca');
    const stranger = kubeOf(await clientOf(another, 'stranger', ['system:masters']));
    const proxyCa = await authority('another-proxy-ca');
    const proxy = await clientOf(proxyCa, 'front-proxy', []);
    const byProxy = new HttpKube(
      fixedAccess(server.url, {
        tls: { ca: pem(server.servingCa), certificate: pem(proxy), key: keyOf(proxy) },
        headers: { 'x-remote-user': 'somebody', 'x-remote-group': 'system:masters' },
      }),
    );
    try {
      await assert.rejects(stranger.list(NAMESPACES));
      await assert.rejects(byProxy.list(NAMESPACES));
      server.write(FILES.clientCa, pem(server.clientCa) + pem(another));
      server.write(FILES.proxyCa, pem(server.proxyCa) + pem(proxyCa));
      await eventually('the stranger is let in', () => stranger.list(NAMESPACES));
      await eventually('the front proxy is believed', () => byProxy.list(NAMESPACES));
    } finally {
      await Promise.all([stranger.close(), byProxy.close()]);
    }
    assert.equal(server.pid, pid);
  });

  test('taken by the same process: what it shows to aggregated servers, kubelets and etcd', async t => {
    assert.equal(takesOf('--proxy-client-cert-file'), 'watch');
    assert.equal(takesOf('--kubelet-client-certificate'), 'per-handshake');
    assert.equal(takesOf('--etcd-certfile'), 'per-handshake');
    const { pid } = server;
    const aggregated = await peer(t);
    await provideAggregated(aggregated.port);
    const kubelet = await peer(t);
    await provideNode(kubelet.port);
    const ask = (path: string) => () => kube.request('GET', path, { busyRetries: 0 }).catch(() => undefined);
    const edges = [
      { what: 'aggregated server', files: FILES.proxyClient, shown: aggregated, ask: ask('/apis/reload.example/v1') },
      { what: 'kubelet', files: FILES.kubeletClient, shown: kubelet, ask: ask(POD_LOG) },
      { what: 'etcd', files: FILES.etcdClient, shown: server.otherEtcd, ask: async () => {} },
    ];
    for (const { what, files, shown, ask: again } of edges) {
      const next = await clientOf(server.clientCa, `next-${files.certificate}`, ['system:masters']);
      await eventually(`a connection to the ${what}`, async () => {
        await again();
        return shown.lastClient !== undefined;
      });
      server.writePair(files, next);
      let endedAt = 0;
      await eventually(`the new certificate at the ${what}`, async () => {
        // Not all the time: who fails to connect waits longer and longer.
        if (Date.now() - endedAt > RECONNECT_MS) {
          endedAt = Date.now();
          shown.disconnect();
        }
        await again();
        return shown.lastClient === serialOf(next);
      });
    }
    assert.equal(server.pid, pid);
  });

  test('taken by the next process only: the CAs of etcd and of kubelets, and the keys of tokens', async t => {
    assert.equal(takesOf('--etcd-cafile'), 'restart');
    assert.equal(takesOf('--kubelet-certificate-authority'), 'restart');
    assert.equal(takesOf('--service-account-signing-key-file'), 'restart');
    const [etcdCa, kubeletCa] = [await authority('another-etcd-ca'), await authority('another-kubelet-ca')];
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const oldKid = await kidOfToken();
    const kubelet = await peer(t, await servingOf(kubeletCa, ['127.0.0.1']));
    await provideNode(kubelet.port);
    server.otherEtcd.show(await servingOf(etcdCa, ['127.0.0.1']));
    server.write(FILES.etcdCa, server.textOf(FILES.etcdCa) + pem(etcdCa));
    server.write(FILES.kubeletCa, server.textOf(FILES.kubeletCa) + pem(kubeletCa));
    server.write(
      FILES.tokenPublicKeys,
      server.textOf(FILES.tokenPublicKeys) + publicKey.export({ format: 'pem', type: 'spki' }),
    );
    server.write(FILES.tokenKey, privateKey.export({ format: 'pem', type: 'pkcs1' }).toString());
    const asksKubelet = () => kube.request('GET', POD_LOG, { busyRetries: 0 });
    // Connections that were under way when the certificate changed are over when later ones are refused.
    const { refusedBy } = server.otherEtcd;
    await eventually('another etcd is refused', () => {
      server.otherEtcd.disconnect();
      return server.otherEtcd.refusedBy > refusedBy + 1;
    });
    const accepted = { etcd: server.otherEtcd.accepted, kubelet: kubelet.accepted };
    const until = Date.now() + NOT_TAKEN_MS;
    while (Date.now() < until) {
      server.otherEtcd.disconnect();
      await asksKubelet().catch(() => {});
      await new Promise(resolve => setTimeout(resolve, 1_000));
    }
    assert.deepEqual({ etcd: server.otherEtcd.accepted, kubelet: kubelet.accepted }, accepted, 'nobody was accepted');
    assert.ok(server.otherEtcd.refusedBy > 0 && kubelet.refusedBy > 0, 'both were refused');
    assert.equal(await kidOfToken(), oldKid);

    const { pid } = server;
    await server.restart();
    assert.notEqual(server.pid, pid);
    await eventually('another etcd is accepted', () => server.otherEtcd.accepted > accepted.etcd);
    await eventually('the kubelet is accepted', async () => {
      await asksKubelet().catch(() => {});
      return kubelet.accepted > accepted.kubelet;
    });
    assert.notEqual(await kidOfToken(), oldKid);
  });

  /** How the trust graph says that kube-apiserver takes a change of a file given with a flag. */
  function takesOf(setting: string): string | undefined {
    return OPERAND_OBJECTS.flatMap(({ uses }) => uses).find(use => use.setting === setting)?.takes;
  }

  function kubeOf(client: CertificateAndKey): HttpKube {
    const tls = { ca: pem(server.servingCa), certificate: pem(client), key: keyOf(client) };
    return new HttpKube(fixedAccess(server.url, { tls }));
  }

  /** The serial number of the certificate that is served now. */
  function presented(serverName: string | undefined): Promise<string> {
    return new Promise((resolve, reject) => {
      const { hostname: host, port } = new URL(server.url);
      const name = serverName === undefined ? {} : { servername: serverName };
      const socket = connect({ host, port: Number(port), rejectUnauthorized: false, ...name }, () => {
        resolve(socket.getPeerX509Certificate()?.serialNumber ?? '');
        socket.destroy();
      });
      socket.once('error', reject);
    });
  }

  async function peer(t: { after(end: () => unknown): void }, shows?: CertificateAndKey): Promise<ListeningPeer> {
    const listening = await listenAs(shows ?? (await servingOf(server.servingCa, ['127.0.0.1'])));
    t.after(() => listening.close());
    return listening;
  }

  async function provideAggregated(port: number): Promise<void> {
    await kube.create(SERVICES, {
      metadata: { namespace: 'default', name: 'aggregated' },
      spec: { type: 'ExternalName', externalName: '127.0.0.1', ports: [{ port }] },
    });
    await kube.create(API_SERVICES, {
      metadata: { name: 'v1.reload.example' },
      spec: {
        group: 'reload.example',
        version: 'v1',
        groupPriorityMinimum: 1000,
        versionPriority: 10,
        insecureSkipTLSVerify: true,
        service: { namespace: 'default', name: 'aggregated', port },
      },
    } as never);
  }

  /** A node whose kubelet listens at a port of this machine, with a pod. */
  async function provideNode(port: number): Promise<void> {
    await createIfMissing(kube, NODES, { metadata: { name: 'reload' } });
    await createIfMissing(kube, SERVICE_ACCOUNTS, { metadata: ACCOUNT });
    await createIfMissing(kube, PODS, {
      metadata: { namespace: 'default', name: 'reload' },
      spec: {
        nodeName: 'reload',
        serviceAccountName: ACCOUNT.name,
        automountServiceAccountToken: false,
        containers: [{ name: 'reload', image: 'reload' }],
      },
    });
    const status = {
      addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    await kube.patch(NODES, { name: 'reload' }, { type: 'merge', body: { status } }, { subresource: 'status' });
  }

  async function kidOfToken(): Promise<string> {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    await createIfMissing(kube, SERVICE_ACCOUNTS, { metadata: ACCOUNT });
    const { status } = (await kube.request('POST', objectPath(SERVICE_ACCOUNTS, ACCOUNT, 'token'), { body })) as {
      status: { token: string };
    };
    const [header = ''] = status.token.split('.');
    return (JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string }).kid;
  }
});

function serialOf(pair: CertificateAndKey): string {
  return new X509Certificate(pem(pair)).serialNumber;
}

function keyOf({ key }: CertificateAndKey): string {
  return key.export({ format: 'pem', type: 'pkcs8' }).toString();
}
