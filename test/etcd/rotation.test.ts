/** The etcd operator with a real etcd of three members: founded, kept, rotated, and never without its majority. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect } from 'node:tls';
import { Agent, request } from 'undici';
import { dataText, loadSecret, TLS_CERT, TLS_KEY } from '../../src/certrotation/secret.ts';
import { silentLog } from '../../src/controller/log.ts';
import { CERT_SIGNER_CONDITION } from '../../src/etcd/cert-signer/controller.ts';
import { materialFromCluster } from '../../src/etcd/client/material.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE } from '../../src/etcd/names.ts';
import { startReadyz } from '../../src/etcd/operand/readyz.ts';
import { RULE_FOR_ROTATION } from '../../src/etcd/quorum/decide.ts';
import { CLUSTER, ETCDS } from '../../src/etcd/resources.ts';
import { days } from '../../src/kube/duration.ts';
import { SECRETS } from '../../src/kube/resource.ts';
import { issuePeer } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';
import { findEtcd, NO_ETCD } from './binary.ts';
import { RealCluster } from './cluster.ts';
import { Load, LoadClient } from './load.ts';
import type { LocalNode } from './node.ts';

const binary = findEtcd();

describe('a real etcd', { skip: binary === undefined ? NO_ETCD : false }, () => {
  let cluster: RealCluster;
  before(async () => {
    cluster = await RealCluster.start(binary as string);
  });
  after(() => cluster.close());

  const node = (index: number) => cluster.nodes[index] as LocalNode;
  const endpoints = () => cluster.nodes.map(({ address }) => `https://${address}:2379`);
  const secret = (name: string, namespace = ETCD_NAMESPACE) => cluster.kube.get(SECRETS, { namespace, name });
  const condition = async () => {
    const { status = {} } = await cluster.kube.get(ETCDS, CLUSTER);
    return status.conditions?.find(({ type }) => type === CERT_SIGNER_CONDITION);
  };
  const isSafe = async () => (await cluster.operator.quorum.check(RULE_FOR_ROTATION, { maxAgeMs: 0 })).safe;

  test('comes up from nothing: the first node begins, the others join as learners and get a vote', async () => {
    await cluster.founded();
    assert.equal(await isSafe(), true);
    assert.ok(Number(await cluster.settled()) <= 2, 'one revision to found it, one that knows all members');
  });

  test('a new leaf on disk is shown at the next handshake, without a restart', async () => {
    const { address, starts } = node(0);
    const shown = await serialShownBy(address);
    const signer = loadSecret(await secret('etcd-signer', CONFIG_NAMESPACE));
    const hostnames = ['localhost', '127.0.0.1', address];
    const leaf = await issuePeer({
      signer,
      hostnames,
      lifetimeMs: days(1),
      now: new Date(),
      keys: systemKeys,
      algorithm: 'P-256',
    });
    const data = {
      'etcd-serving-master-0.crt': Buffer.from(encodeCertificates(leaf.chain)).toString('base64'),
      'etcd-serving-master-0.key': Buffer.from(encodePrivateKey(leaf.key)).toString('base64'),
    };
    node(0).writeCertificates({ secrets: [{ metadata: { name: 'etcd-all-certs' }, data }], configMaps: [] });
    const now = await serialShownBy(address);
    assert.notEqual(now, shown);
    assert.equal(BigInt(`0x${now}`), leaf.chain[0]?.serial);
    node(0).writeCertificates({ secrets: [await secret('etcd-all-certs')], configMaps: [] });
    assert.equal(await serialShownBy(address), shown);
    assert.equal(node(0).starts, starts);
  });

  test('readyz answers for its own member, with whatever certificate is on disk', async t => {
    const { address, file } = { address: node(1).address, file: (path: string) => node(1).file(path) };
    const pair = (name: string) => ({
      cert: file(`secrets/etcd-all-certs/${name}.crt`),
      key: file(`secrets/etcd-all-certs/${name}.key`),
    });
    const ca = file('configmaps/etcd-all-bundles/server-ca-bundle.crt');
    const target = `https://${address}:2379`;
    const options = {
      target,
      listenAddress: address,
      listenPort: 0,
      serving: pair('etcd-serving-master-1'),
      client: { ca, ...pair('etcd-peer-master-1') },
    };
    const readyz = await startReadyz(options, silentLog);
    t.after(() => readyz.stop());
    const agent = new Agent({ allowH2: false, connect: { ca: (await materialFromCluster(cluster.kube)()).ca } });
    t.after(() => agent.close());
    const ask = async (path: string) => {
      const { statusCode, body } = await request(new URL(path, readyz.url), { dispatcher: agent });
      await body.dump();
      return statusCode;
    };
    assert.deepEqual([await ask('/readyz'), await ask('/healthz'), await ask('/other')], [200, 200, 404]);
  });

  test('one member is lost in the middle of a rollout: it pauses; a second: nothing moves; they come back: it goes on', async () => {
    const revision = (await cluster.settled()) as number;
    const starts = cluster.nodes.map(({ starts: count }) => count);
    const lost: LocalNode[] = [];
    cluster.onServing = async node => {
      if (lost.length > 0) return;
      lost.push(node);
      await node.stop('SIGKILL');
    };
    await cluster.force('etcd-serving-master-1');
    // Where nobody leads for a moment there are fewer, and that is told first.
    const text = /etcd would have 1 healthy members left and needs 2: .*master-\d/;
    await cluster.until('the pause', () =>
      cluster.events.some(({ reason, message }) => reason === 'NodeRolloutPaused' && text.test(message)),
    );
    cluster.onServing = async () => {};

    const others = cluster.nodes.filter(node => node !== lost[0]);
    const [second, survivor] = others as [LocalNode, LocalNode];
    await second.stop('SIGKILL');
    const { quorum } = cluster.operator;
    assert.equal(await isSafe(), false);
    assert.equal((await quorum.mayRestart({ nodeName: survivor.name, isOperandReady: true })).allowed, false);
    assert.equal((await quorum.mayRestart({ nodeName: second.name, isOperandReady: false })).allowed, true);
    assert.deepEqual(
      others.map(node => [node.revision, node.starts]),
      others.map(node => [revision, starts[cluster.nodes.indexOf(node)]]),
      'nobody else was touched',
    );

    await Promise.all([...lost, second].map(node => cluster.revive(node)));
    await cluster.until('all members', isSafe);
    await cluster.until('the rollout to end', () => cluster.settled(revision + 1));
  });

  test('a member is down: a forced rotation of both signers is withheld, then runs through under load in two restarts each', async t => {
    await node(2).stop('SIGKILL');
    const signers = { server: await secret('etcd-signer'), metrics: await secret('etcd-metric-signer') };
    const bundle = (await secret('etcd-all-certs')).data;
    await cluster.force('etcd-signer');
    await cluster.force('etcd-metric-signer');
    // Right after the loss there may be no leader, and then nobody is healthy.
    const text =
      /can't evaluate whether quorum is safe: etcd cluster has quorum of 2 and 2 healthy members which is not fault tolerant.*insufficient quorum$/;
    await cluster.until('the condition', async () => {
      const found = await condition();
      return found?.status === 'True' && text.test(found.message ?? '');
    });
    assert.deepEqual((await secret('etcd-signer')).data, signers.server.data);
    assert.deepEqual((await secret('etcd-all-certs')).data, bundle);

    const revision = (await cluster.settled()) as number;
    const starts = cluster.nodes.map(({ starts: count }) => count);
    const firstLine = cluster.lines.length;
    const load = new Load(endpoints(), materialFromCluster(cluster.kube));
    t.after(() => load.stop());
    const began = Date.now();
    node(2).start();
    // Its return is no restart by the operator.
    starts[2] = (starts[2] as number) + 1;
    await cluster.until(
      'both signers in use',
      async () => (await cluster.follows('etcd-signer')) && (await cluster.follows('etcd-metric-signer')),
    );
    await cluster.until('the leaves on every node', () => cluster.settled(revision + 2));
    await cluster.until('enough writes and reads', () => load.writes > 100 && load.reads > 50);
    const tookMs = Date.now() - began;
    const report = await load.stop();

    assert.equal(await cluster.settled(), revision + 2, 'a revision for the bundles, one for the leaves');
    assert.deepEqual(
      cluster.nodes.map(({ starts: count }, index) => count - (starts[index] as number)),
      [2, 2, 2],
    );
    assert.deepEqual(report.failures, []);
    assert.ok(report.fewestUp >= 2, `at some moment only ${report.fewestUp} members answered`);
    const client = new LoadClient(endpoints(), materialFromCluster(cluster.kube));
    assert.ok((await client.count('load/')) >= report.acknowledged.size, 'an acknowledged write was lost');
    await client.close();

    assertBundleBeforeLeaf(cluster.said(firstLine));
    const { writes, retries } = { writes: report.acknowledged.size, retries: report.retries };
    console.log(
      `# rotation of both signers: ${tookMs} ms, 2 restarts of each member, ${writes} writes, ${report.reads} reads, ${retries} retries`,
    );
  });

  test('a forced leaf is replaced under load in one restart of each member', async t => {
    const revision = (await cluster.settled()) as number;
    const starts = cluster.nodes.map(({ starts: count }) => count);
    const before = (await secret('etcd-peer-master-1')).data?.[TLS_CERT];
    const load = new Load(endpoints(), materialFromCluster(cluster.kube));
    t.after(() => load.stop());
    await cluster.force('etcd-peer-master-1');
    await cluster.until('the leaf on every node', () => cluster.settled(revision + 1));
    const report = await load.stop();
    assert.notEqual((await secret('etcd-peer-master-1')).data?.[TLS_CERT], before);
    assert.deepEqual(
      cluster.nodes.map(({ starts: count }, index) => count - (starts[index] as number)),
      [1, 1, 1],
    );
    assert.deepEqual(report.failures, []);
    assert.ok(report.fewestUp >= 2, `at some moment only ${report.fewestUp} members answered`);
  });

  test('the metrics signer alone is replaced under load in two restarts of each member', async t => {
    const revision = (await cluster.settled()) as number;
    const starts = cluster.nodes.map(({ starts: count }) => count);
    const server = (await secret('etcd-signer')).data;
    const firstLine = cluster.lines.length;
    const load = new Load(endpoints(), materialFromCluster(cluster.kube));
    t.after(() => load.stop());
    await cluster.force('etcd-metric-signer');
    await cluster.until('the signer in use', () => cluster.follows('etcd-metric-signer'));
    await cluster.until('the leaves on every node', () => cluster.settled(revision + 2));
    const report = await load.stop();
    assert.deepEqual((await secret('etcd-signer')).data, server, 'the other family is left alone');
    assert.deepEqual(
      cluster.nodes.map(({ starts: count }, index) => count - (starts[index] as number)),
      [2, 2, 2],
    );
    assert.deepEqual(report.failures, []);
    assert.ok(report.fewestUp >= 2, `at some moment only ${report.fewestUp} members answered`);
    assertBundleBeforeLeaf(cluster.said(firstLine));
  });

  test('scrapers with a certificate of the new metrics signer are let in, and nobody else', async t => {
    const client = await secret('etcd-metric-client');
    const bundles = node(0).file('configmaps/etcd-all-bundles/metrics-ca-bundle.crt');
    const { readFileSync } = await import('node:fs');
    const ca = readFileSync(bundles, 'utf8');
    const scrape = async (connection: { cert?: string; key?: string }) => {
      const agent = new Agent({ allowH2: false, connect: { ca, ...connection, timeout: PATIENCE_MS } });
      t.after(() => agent.close());
      const { statusCode, body } = await request(`https://${node(0).address}:9979/metrics`, {
        dispatcher: agent,
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      const text = await body.text();
      return statusCode === 200 ? text : '';
    };
    const [cert, key] = [dataText(client, TLS_CERT) ?? '', dataText(client, TLS_KEY) ?? ''];
    const text = await cluster.until('the metrics', () => scrape({ cert, key }));
    assert.match(text, /etcd_/);
    await assert.rejects(scrape({}));
  });

  /** What others load comes before what they have to check with it. */
  function assertBundleBeforeLeaf(said: readonly string[]): void {
    const steps = ['published new CA bundles', 'the wanted signer is now in use', 'published leaves'];
    const order = steps.map(text => said.findIndex(line => line.startsWith(text)));
    assert.ok(
      order.every((line, index) => line >= 0 && (index === 0 || line > (order[index - 1] as number))),
      `${order.join()} in\n${said.join('\n')}`,
    );
  }

  async function serialShownBy(address: string): Promise<string> {
    const { ca, cert, key } = await materialFromCluster(cluster.kube)();
    return new Promise((resolve, reject) => {
      const socket = connect({ host: address, port: 2379, ca, cert, key }, () => {
        const { serialNumber } = socket.getPeerCertificate();
        socket.destroy();
        resolve(serialNumber);
      });
      socket.once('error', reject);
    });
  }
});
