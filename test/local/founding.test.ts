/** A cluster that is founded with short days of rotation: nothing of what it is founded with ends before it is there. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { dataText, TLS_CERT } from '../../src/certrotation/secret.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { days, seconds } from '../../src/kube/duration.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { SECRETS } from '../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../../src/kube-apiserver/chains.ts';
import { bootstrap } from '../../src/local/real/bootstrap.ts';
import { BUILT_PROGRAMS } from '../../src/local/real/built-programs.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import { eventually } from '../tools/eventually.ts';

test('with days of two seconds the first leaves live as long as with days of a day', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-founding-'));
  t.after(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));
  const binaries = join(dir, 'bin');
  mkdirSync(binaries);
  // Certificates come before the servers that show them: what is started need not serve.
  for (const name of BUILT_PROGRAMS) {
    writeFileSync(
      join(binaries, name),
      '#!/bin/sh\n[ "$1" = --version ] && echo Kubernetes v1.36.3 && exit\nexec sleep 600\n',
    );
    chmodSync(join(binaries, name), 0o755);
  }
  const stop = new AbortController();
  const cluster = join(dir, 'cluster');
  const founding = bootstrap({
    dir: cluster,
    dayMs: seconds(2),
    workers: 0,
    keyAlgorithm: 'P-256',
    programs: { binaries },
    signal: stop.signal,
  }).then(
    () => 'founded',
    (error: Error) => error.message,
  );
  let ended: string | undefined;
  void founding.then(how => (ended = how));
  /** Until there is something, or nothing can come any more. */
  const during = <T>(what: string, find: () => Promise<T | undefined> | T | undefined) =>
    eventually(what, () => {
      if (ended !== undefined) throw new Error(`the founding ended before ${what} was there: ${ended}`);
      return find();
    });
  const kubeconfig = join(cluster, 'bootstrap', 'kubeconfig');
  try {
    await during('its API', () => existsSync(kubeconfig) || undefined);
    const kube = new HttpKube(await loadAccess({ path: kubeconfig }));
    try {
      const [{ target } = assert.fail('there is a chain')] = KUBE_APISERVER_CHAINS;
      const leaf = await during('the first leaf', () => kube.get(SECRETS, target).catch(() => undefined));
      const [certificate] = readCertificates(dataText(leaf, TLS_CERT) ?? '').certificates;
      const lifeMs = (certificate?.notAfter.getTime() ?? 0) - (certificate?.notBefore.getTime() ?? 0);
      assert.ok(lifeMs > days(1), `it lives for ${lifeMs} ms`);
    } finally {
      await kube.close();
    }
  } finally {
    stop.abort(new Error('seen enough'));
    assert.equal(await founding, 'seen enough');
  }
});
