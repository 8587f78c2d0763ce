import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { startEngine } from '../../api/api.ts';
import { silentLog } from '../../controller/log.ts';
import { CONFIG_MAPS, NAMESPACES, SECRETS } from '../../kube/resource.ts';
import { MANAGED_NAMESPACE } from '../../kube-apiserver/namespaces.ts';
import { SERVER_CA_DIGEST } from '../../machine-config-api/names.ts';
import { serverCaDigest } from '../../machine-config-api/server-ca-digest.ts';
import { CSR_SIGNER } from '../cluster-inputs.ts';
import { MANIFESTS } from '../node.ts';
import type { PartContext } from '../part.ts';
import { managersPart } from './managers-part.ts';

const NAMES = ['kube-controller-manager', 'kube-scheduler'];

test('each manifest names the bundle that whoever starts with it finds, and that comes first', async t => {
  const root = mkdtempSync(join(tmpdir(), 'rotunda-managers-'));
  const api = await startEngine({});
  const stop = new AbortController();
  const data = { 'tls.crt': 'eA==', 'tls.key': 'eA==' };
  for (const name of new Set([MANAGED_NAMESPACE, CSR_SIGNER.namespace])) {
    await api.kube.create(NAMESPACES, { metadata: { name } });
  }
  await api.kube.create(SECRETS, { metadata: CSR_SIGNER, data });
  for (const name of NAMES) {
    await api.kube.create(SECRETS, {
      metadata: { namespace: MANAGED_NAMESPACE, name: `${name}-client-cert-key` },
      data,
    });
  }
  const bundles = Array.from({ length: 10 }, (_, index) => `bundle ${index}`);
  const key = { namespace: MANAGED_NAMESPACE, name: 'kube-apiserver-server-ca' };
  await api.kube.create(CONFIG_MAPS, { metadata: key, data: { 'ca-bundle.crt': bundles[0] ?? '' } });
  const context = {
    kube: api.kube,
    url: 'https://127.0.0.1:1',
    controlPlane: [{ root, name: 'master-0', runner: () => undefined }],
    log: silentLog,
    signal: stop.signal,
    patiently: <T>(work: () => Promise<T>) => work(),
    changed() {},
  };
  const { ended } = await managersPart('/tokens').start(context as unknown as PartContext);
  t.after(async () => {
    stop.abort();
    await ended;
    await api.close();
    rmSync(root, { recursive: true, force: true });
  });
  /** The numbers of the bundle that a manifest names, and of the one that its process would read now. */
  const found = (name: string) => {
    try {
      const manifest = JSON.parse(readFileSync(join(root, MANIFESTS, `${name}-pod.yaml`), 'utf8')) as Pod;
      const file = join(root, 'etc/kubernetes/static-pod-resources', `${name}-certs/ca.crt`);
      const digest = manifest.metadata?.annotations?.[SERVER_CA_DIGEST];
      const named = bundles.findIndex(bundle => serverCaDigest(Buffer.from(bundle)) === digest);
      return { named, read: bundles.indexOf(readFileSync(file, 'utf8')) };
    } catch {
      return undefined;
    }
  };
  const untilNamed = async (index: number) => {
    for (const name of NAMES) while (found(name)?.named !== index) await setImmediate();
  };
  await untilNamed(0);
  const seen: { named: number; read: number }[] = [];
  const watcher = watch(join(root, MANIFESTS), () => {
    for (const name of NAMES) seen.push(...[found(name)].filter(one => one !== undefined));
  });
  for (const [index, bundle] of bundles.entries()) {
    await api.kube.patch(CONFIG_MAPS, key, { type: 'merge', body: { data: { 'ca-bundle.crt': bundle } } });
    if (index % 3 === 0) await untilNamed(index);
  }
  await untilNamed(bundles.length - 1);
  watcher.close();
  assert.ok(seen.length > 0);
  for (const { named, read } of seen) assert.ok(named >= 0 && read >= named, `named ${named}, read ${read}`);
});
