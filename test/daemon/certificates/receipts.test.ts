/**
 * What a control-plane node says its administrators would verify with (spec 90, section 3): on a real disk, where cert-syncer puts whole
 * directories in the place of others, and in the words of the trust graph.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startEngine } from '../../../src/api/api.ts';
import { silentLog } from '../../../src/controller/log.ts';
import { readBundle } from '../../../src/daemon/certificates/bundle.ts';
import { CertificateWriter } from '../../../src/daemon/certificates/controller.ts';
import { NODE_KUBECONFIGS } from '../../../src/daemon/certificates/paths.ts';
import { ca, installKubelet, kubeconfigText } from '../../../src/daemon/certificates/testing.ts';
import { NodeWriter } from '../../../src/daemon/node-writer.ts';
import { localHost } from '../../../src/host/local.ts';
import { systemClock } from '../../../src/kube/clock.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { NODES } from '../../../src/kube/resource.ts';
import { kubeApiserverTrust } from '../../../src/kube-apiserver/trust.ts';
import { installDefinitions } from '../../../src/machine-config/testing.ts';
import { removeDirectory, replaceDirectory } from '../../../src/staticpod/node/directory-swap.ts';
import { systemFiles } from '../../../src/staticpod/node/files.ts';
import { caDigest, decodeReceipts, NODE_RECEIPTS } from '../../../src/trust/receipts.ts';
import { eventually } from '../../tools/eventually.ts';

const [A, B] = [await ca('old'), await ca('new')];

test('a kubeconfig that cert-syncer brings is what the node says at once, however often the directory is swapped', async t => {
  const root = mkdtempSync(join(tmpdir(), 'rotunda-receipts-'));
  const api = await startEngine({});
  const stop = new AbortController();
  t.after(async () => {
    stop.abort();
    await running;
    await api.close();
    rmSync(root, { recursive: true, force: true });
  });
  await installDefinitions(api);
  await api.kube.create(NODES, { metadata: { name: 'master-0' } });
  const host = localHost({ root });
  await installKubelet(host, A);
  const nodeWriter = new NodeWriter({ kube: api.kube, nodeName: 'master-0' });
  const options = { kube: api.kube, host, nodeName: 'master-0', nodeWriter, clock: systemClock };
  const running = new CertificateWriter({ ...options, log: silentLog, events: recordingEvents() }).run(stop.signal);
  const said = async () => {
    const { metadata } = await api.kube.get(NODES, { name: 'master-0' });
    return decodeReceipts(metadata?.annotations?.[NODE_RECEIPTS])?.map(({ process, file, cas }) => ({
      process,
      name: file.split('/').at(-1),
      cas: [A, B]
        .map(pem => Number(cas.includes(caDigest(readBundle(Buffer.from(pem)).certificates[0] as never))))
        .join(''),
    }));
  };
  const untilSaid = (expected: string) =>
    eventually(expected, async () => (await said())?.map(({ name, cas }) => `${name} ${cas}`).join(', ') === expected);
  const directory = `${root}${NODE_KUBECONFIGS}`;
  const swap = (bundle: string, ...names: string[]) => {
    const content = { content: Buffer.from(kubeconfigText(bundle)), mode: 0o600 };
    return replaceDirectory(
      systemFiles(),
      directory,
      new Map(names.map(name => [`${name}.kubeconfig`, content])),
      'cert-sync',
    );
  };
  await untilSaid('kubeconfig 10');
  await swap(A, 'lb-int', 'localhost');
  await untilSaid('lb-int.kubeconfig 10, localhost.kubeconfig 10, kubeconfig 10');
  for (const [bundle, text] of [
    [A + B, '11'],
    [B, '01'],
    [A + B, '11'],
  ] as const) {
    await swap(bundle, 'lb-int');
    await untilSaid(`lb-int.kubeconfig ${text}, kubeconfig 10`);
  }
  const { edges } = kubeApiserverTrust();
  for (const { process } of (await said()) ?? []) {
    assert.ok(
      edges.some(({ client }) => client.process === process && client.verifiesWith !== undefined),
      process,
    );
  }
  await removeDirectory(systemFiles(), directory, 'cert-sync');
  await untilSaid('kubeconfig 10');
});
