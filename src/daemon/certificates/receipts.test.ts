import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { dump, load } from 'js-yaml';
import { presentersOf } from '../../hand-over/presenters.ts';
import { memoryHost, observed } from '../../host/memory.ts';
import type { Host } from '../../host/port.ts';
import { days } from '../../kube/duration.ts';
import { KUBE_APISERVER_CHAINS } from '../../kube-apiserver/chains.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import { issueClient, issueSigner } from '../../pki/issue.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { secret } from '../../trust/object.ts';
import { caDigest, decodeReceipts, encodeReceipts, type NodeReceipt, signingKey } from '../../trust/receipts.ts';
import { readBundle } from './bundle.ts';
import { KubeletRestart } from './kubelet.ts';
import {
  BOOTSTRAP_KUBECONFIG,
  CLIENT_CERTIFICATES,
  KUBELET,
  KUBELET_CAS_RECORD,
  KUBELET_RESTART_RECORD,
  LIVE_KUBECONFIG,
  NODE_KUBECONFIGS,
} from './paths.ts';
import { findReceipts } from './receipts.ts';
import { ensureServerCa, restartForKnownServerCa } from './server-ca.ts';
import { authoritiesOf, base64, ca, installKubelet, kubeconfigText, NOW } from './testing.ts';

const CERTIFICATE = { now: NOW, lifetimeMs: days(1), algorithm: 'P-256' } as const;

const A = await ca('signer-a');
const B = await ca('signer-b');
const C = await ca('signer-c');
const DEFERRED = await ca('openshift-kube-apiserver-operator_localhost-recovery-serving-signer@1700000000');
const NAMES = new Map([A, B, C, DEFERRED].map((pem, index) => [digestsIn(pem)[0], 'ABCD'[index]]));

describe('what a node says its processes have loaded', () => {
  const take = (host: Host, bundle: string) => ensureServerCa(host, Buffer.from(bundle), []).then(() => {});
  const table: [what: string, change: (host: Host) => Promise<void>, kubelet: string][] = [
    ['a kubelet that nobody has touched', async () => {}, 'started A'],
    ['a new CA after the restart for it', host => take(host, A + B), 'started AB'],
    ['a CA for which no restart is made now', host => take(host, A + DEFERRED), 'started A'],
    [
      'the same when the restart has been made',
      async host => {
        await take(host, A + DEFERRED);
        await restartForKnownServerCa(host);
      },
      'started AD',
    ],
    [
      'the same after a reboot',
      async host => {
        await take(host, A + DEFERRED);
        await host.reboot('test');
      },
      'started AD',
    ],
    [
      'a CA that came while another one waits for a restart',
      async host => {
        await take(host, A + DEFERRED);
        await take(host, A + DEFERRED + B);
      },
      'started ABD',
    ],
    ['a CA that has left the file', host => take(host, A + B).then(() => take(host, B)), 'started B'],
    [
      'a CA that has left the file, and that somebody else has brought back',
      async host => {
        await take(host, A + B);
        await take(host, A);
        await host.files.write(LIVE_KUBECONFIG, Buffer.from(kubeconfigText(A + B)));
      },
      'started A',
    ],
    [
      'a restart that is due, and nobody knows what the kubelet was started with',
      host => new KubeletRestart(host).record('deferred'),
      'nothing',
    ],
    [
      'a record of it that cannot be read',
      host => host.files.write(KUBELET_CAS_RECORD, Buffer.from('{')),
      'started nothing',
    ],
    [
      'a CA that somebody else has put into the file',
      async host => {
        await take(host, A);
        await host.files.write(LIVE_KUBECONFIG, Buffer.from(kubeconfigText(A + B)));
      },
      'started A',
    ],
    [
      'the same when it is wanted too: the kubelet is restarted for it',
      async host => {
        await take(host, A);
        await host.files.write(LIVE_KUBECONFIG, Buffer.from(kubeconfigText(A + B)));
        await take(host, A + B);
      },
      'started AB',
    ],
    [
      'a kubelet that is masked',
      async host => {
        await host.files.symlink('/dev/null', `/etc/systemd/system/${KUBELET}`);
        await host.files.write(LIVE_KUBECONFIG, Buffer.from(kubeconfigText(A + B)));
        await new KubeletRestart(host).record('now');
      },
      'on-use AB',
    ],
    [
      'a kubeconfig that cannot be read',
      host => host.files.write(LIVE_KUBECONFIG, Buffer.from('token: hunter2: x')),
      'nothing',
    ],
    [
      'a directory where the kubeconfig should be',
      async host => {
        await host.files.remove(LIVE_KUBECONFIG);
        await host.files.makeDirectory(LIVE_KUBECONFIG);
      },
      'nothing',
    ],
    [
      'CAs in a file of their own',
      async host => {
        await host.files.write('/var/lib/kubelet/pki/ca.crt', Buffer.from(A + B));
        await host.files.write(LIVE_KUBECONFIG, namingFile('pki/ca.crt'));
      },
      'started AB',
    ],
    [
      'a file of CAs outside of the machine',
      host => host.files.write(LIVE_KUBECONFIG, namingFile('../../../../etc/shadow')),
      'started nothing',
    ],
    [
      'a kubelet without a kubeconfig of its own yet',
      host => host.files.remove(LIVE_KUBECONFIG),
      `started A in ${BOOTSTRAP_KUBECONFIG}`,
    ],
  ];
  for (const [what, change, expected] of table) {
    test(what, async () => {
      const host = memoryHost();
      await installKubelet(host, A);
      await change(host);
      const { receipts } = await findReceipts(host);
      assert.equal(receipts.length <= 1, true);
      assert.equal(receipts[0] === undefined ? 'nothing' : shown(receipts[0]), expected);
    });
  }

  test('administrators of a control-plane node, each kubeconfig as it is', async () => {
    const host = memoryHost();
    const put = (name: string, bytes: Buffer) =>
      host.files.write(`${NODE_KUBECONFIGS}/${name}`, bytes, { mode: 0o600 });
    await put('localhost.kubeconfig', Buffer.from(kubeconfigText(A + B)));
    await put('lb-int.kubeconfig', Buffer.from(kubeconfigText(B, 'hunter2')));
    await put('lb-ext.kubeconfig', namingFile('/etc/ca.crt'));
    await put('broken.kubeconfig', Buffer.from('token: hunter2: x'));
    await put('notes.txt', Buffer.from(kubeconfigText(C)));
    await host.files.write('/etc/ca.crt', Buffer.from(C));
    const { receipts, caFiles } = await findReceipts(host);
    assert.deepEqual(caFiles, ['/etc/ca.crt']);
    assert.deepEqual(
      receipts.map(({ process, kind, file, cas }) => [
        process,
        kind,
        file.slice(NODE_KUBECONFIGS.length + 1),
        named(cas),
      ]),
      [
        ['node administrator', 'on-use', 'lb-ext.kubeconfig', 'C'],
        ['node administrator', 'on-use', 'lb-int.kubeconfig', 'B'],
        ['node administrator', 'on-use', 'localhost.kubeconfig', 'AB'],
      ],
    );
    assert.equal(JSON.stringify(receipts).includes('hunter2'), false);
  });
});

test('of whom the certificates are that processes of a control-plane node show', async () => {
  const host = memoryHost();
  const signer = await issueSigner({ ...CERTIFICATE, commonName: 'signer', keys: seededKeys('signer') });
  const { chain } = await issueClient({ ...CERTIFICATE, signer, user: { name: 'u' }, keys: seededKeys('client') });
  const pem = encodeCertificates(chain);
  const [first, second] = CLIENT_CERTIFICATES;
  await host.files.write(first!.file, Buffer.from(pem));
  await host.files.write(second!.file, Buffer.from('no certificate, hunter2'));
  const kubeconfig = load(kubeconfigText(A)) as { users: { user: Record<string, string> }[] };
  kubeconfig.users[0]!.user['client-certificate-data'] = base64(pem);
  await host.files.write(`${NODE_KUBECONFIGS}/localhost.kubeconfig`, Buffer.from(dump(kubeconfig)));
  const { receipts } = await findReceipts(host);
  const shows = signingKey(signer.chain[0]!);
  assert.ok(shows);
  assert.deepEqual(
    receipts.map(({ process, file, cas, shows: issuer }) => [process, file, named(cas), issuer]),
    [
      ['node administrator', `${NODE_KUBECONFIGS}/localhost.kubeconfig`, 'A', shows],
      ['kube-apiserver', first!.file, 'nothing', shows],
    ],
  );
  assert.deepEqual(
    decodeReceipts(encodeReceipts(receipts))?.map(receipt => receipt.shows),
    [shows, shows],
  );
});

test('the agent sees what the trust graph says that agents see', () => {
  const leaves = KUBE_APISERVER_CHAINS.map(({ target }) => secret(target.namespace, target.name));
  const wanted = presentersOf(kubeApiserverTrust(), leaves).flatMap(({ process, means }) =>
    means.kind === 'agent' ? means.files.map(file => `${process} ${file}`) : [],
  );
  const files = wanted.filter(file => !file.includes(NODE_KUBECONFIGS));
  assert.deepEqual(files.toSorted(), CLIENT_CERTIFICATES.map(({ process, file }) => `${process} ${file}`).toSorted());
  assert.equal(wanted.length - files.length, 4, 'and the kubeconfigs of administrators');
});

class Died extends Error {}

/** A machine whose kubelet reads its kubeconfig when it starts, and never again. */
async function machine() {
  let loaded: string[] = [];
  const read = async () => {
    loaded = digestsIn(await authoritiesOf(host, LIVE_KUBECONFIG));
  };
  const host = memoryHost({
    async onService(verb, unit) {
      if (unit === KUBELET && verb !== 'stop') await read();
    },
    async onReboot() {
      await host.files.write('/run/rotunda/boot-id', Buffer.from(randomUUID()));
      await read();
    },
  });
  await installKubelet(host, A);
  return {
    host,
    crashes: read,
    /** Whatever the agent would say now is true, and stays true when the kubelet starts again by itself. */
    async assertTruth(when: string) {
      const { receipts } = await findReceipts(host);
      const file = digestsIn(await authoritiesOf(host, LIVE_KUBECONFIG));
      for (const digest of receipts.flatMap(({ cas }) => cas)) {
        assert.ok(loaded.includes(digest), `${when}: ${NAMES.get(digest)} is not loaded`);
        assert.ok(file.includes(digest), `${when}: ${NAMES.get(digest)} is not in the file`);
      }
      return receipts[0] === undefined ? 'nothing' : shown(receipts[0]);
    },
    /** Lets the agent die before its n-th operation; says whether it came so far. */
    async dies(work: (host: Host) => Promise<unknown>, survived: number): Promise<boolean> {
      let count = 0;
      const dying = observed(host, () => {
        if (count++ >= survived) throw new Died('killed');
      });
      await work(dying).catch(() => {});
      return count > survived;
    },
  };
}

test('an agent that dies before any operation has said nothing wrong, and says all in the end', async () => {
  for (const [bundle, expected] of [
    [A + B, 'started AB'],
    [B, 'started B'],
    [A + DEFERRED, 'started A'],
    [B + DEFERRED, 'started BD'],
  ] as const) {
    const work = (host: Host) => ensureServerCa(host, Buffer.from(bundle), []);
    let isAlive = true;
    for (let survived = 0; isAlive; survived++) {
      const { host, dies, crashes, assertTruth } = await machine();
      isAlive = await dies(work, survived);
      await assertTruth(`died at ${survived}`);
      await crashes();
      await assertTruth(`died at ${survived}, and then the kubelet`);
      await new KubeletRestart(host).resume();
      await assertTruth('a new agent');
      await work(host);
      assert.equal(await assertTruth('its first pass'), expected);
      assert.equal((await host.files.read(KUBELET_RESTART_RECORD)) === undefined, !expected.endsWith(' A'));
    }
  }
});

test('no sequence of bundles, deaths, reboots and other hands makes a node say that a CA is loaded which is not', async () => {
  const bundle = fc.subarray([A, B, C, DEFERRED], { minLength: 1 }).map(list => list.join(''));
  const step = fc.oneof(
    fc.record({ kind: fc.constant('bundle' as const), bundle, survived: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ kind: fc.constant('deferred' as const), survived: fc.integer({ min: 0, max: 40 }) }),
    fc.record({ kind: fc.constant('other hand' as const), bundle, isKubeletKilled: fc.boolean() }),
    fc.record({ kind: fc.constantFrom('kubelet' as const, 'reboot' as const, 'agent' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async steps => {
      const { host, dies, crashes, assertTruth } = await machine();
      await ensureServerCa(host, Buffer.from(A), []);
      for (const [index, one] of steps.entries()) {
        if (one.kind === 'bundle')
          await dies(dying => ensureServerCa(dying, Buffer.from(one.bundle), []), one.survived);
        else if (one.kind === 'deferred') await dies(restartForKnownServerCa, one.survived);
        else if (one.kind === 'other hand') {
          // After a boot the agent has looked before anybody else comes.
          await ensureServerCa(host, Buffer.from(A), []);
          await host.files.write(LIVE_KUBECONFIG, Buffer.from(kubeconfigText(one.bundle)));
          if (one.isKubeletKilled) await crashes();
          await assertTruth(`step ${index}, ${one.kind}`);
          // What it takes away and brings back before the agent has looked, nobody can know.
          await ensureServerCa(host, Buffer.from(A), []);
        } else if (one.kind === 'kubelet') await crashes();
        else if (one.kind === 'reboot') await host.reboot('test');
        else await new KubeletRestart(host).resume();
        await assertTruth(`step ${index}, ${one.kind}`);
      }
    }),
    { numRuns: 200 },
  );
});

function digestsIn(pem: string): string[] {
  return readBundle(Buffer.from(pem)).certificates.map(caDigest);
}

function named(cas: readonly string[]): string {
  return (
    cas
      .map(digest => NAMES.get(digest) ?? '?')
      .toSorted()
      .join('') || 'nothing'
  );
}

function shown({ kind, cas, file }: NodeReceipt): string {
  return `${kind} ${named(cas)}${file === LIVE_KUBECONFIG ? '' : ` in ${file}`}`;
}

function namingFile(file: string): Buffer {
  const kubeconfig = load(kubeconfigText('')) as { clusters: { cluster: Record<string, unknown> }[] };
  const { 'certificate-authority-data': _, ...cluster } = kubeconfig.clusters[0]?.cluster ?? {};
  return Buffer.from(
    JSON.stringify({
      ...kubeconfig,
      clusters: [{ name: 'x', cluster: { ...cluster, 'certificate-authority': file } }],
    }),
  );
}
