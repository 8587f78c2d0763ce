/**
 * Folders that are not as kubeadm leaves them, through the agents and the adoption of their cluster (spec 80, KA-1): a word that names the
 * file and the node and says what to do, and nothing is touched there, neither a byte nor a mode nor a time. What is only unusual is
 * adopted, and what can be done with it is done.
 */
import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { describe, test } from 'node:test';
import { observed } from '../../../src/host/memory.ts';
import { HostError } from '../../../src/host/port.ts';
import { days, minutes } from '../../../src/kube/duration.ts';
import { CONFIG_MAPS, SECRETS } from '../../../src/kube/resource.ts';
import { onlyWatched } from '../../../src/kubeadm/adopt/compare.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS } from '../../../src/kubeadm/chains.ts';
import { PKI_NAMESPACE } from '../../../src/kubeadm/names.ts';
import { wantedKey } from '../../../src/kubeadm/wanted.ts';
import type { CertificateAndKey } from '../../../src/pki/authority.ts';
import { issueIntermediate, issueSigner } from '../../../src/pki/issue.ts';
import { systemKeys } from '../../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../../src/pki/pem.ts';
import { AdoptedScene, type Strange } from './adopted-scene.ts';
import { clusterSigners, manifest, newSigner, PKI, type Signers, snapshot } from './kubeadm-node.ts';
import { MADE, type Scene } from './scene.ts';

const FOLDERS = ['/etc', '/var'];
const CA = `${PKI}/ca.crt`;
const ADMIN = '/etc/kubernetes/admin.conf';
const SCHEDULER = '/etc/kubernetes/scheduler.conf';
const PROXY_CLIENT = `${PKI}/front-proxy-client.crt`;

const pem = ({ chain }: Pick<CertificateAndKey, 'chain'>) => encodeCertificates(chain);
const foreign = () => newSigner('somebody else', MADE);
const withSigners = (more: () => Promise<Partial<Signers>>) => async () => ({
  ...(await clusterSigners(MADE)),
  ...(await more()),
});
const put = ({ host: { files } }: Scene, path: string, content: string | Buffer) =>
  files.write(path, Buffer.from(content));
const remove = ({ host: { files } }: Scene, path: string) => files.remove(path);
const unreadable = (path: string): NonNullable<Strange['host']> => {
  return host =>
    observed(host, ({ name, args }) => {
      if (name === 'files.read' && args[0] === path) throw new HostError('io', 'permission denied');
    });
};

async function change(scene: Scene, path: string, changed: (text: string) => string): Promise<void> {
  const text = await scene.text(path);
  assert.notEqual(changed(text), text);
  await put(scene, path, changed(text));
}

const HOSTILE: Readonly<
  Record<string, { readonly on: Strange; readonly says: readonly RegExp[]; readonly everywhere?: true }>
> = {
  'the key of a CA is missing on one node': {
    on: { did: scene => remove(scene, `${PKI}/ca.key`) },
    says: [/^a has no ca\.key, which b has: copy it, /],
  },
  'the key of a leaf is missing': {
    on: { did: scene => remove(scene, `${PKI}/apiserver.key`) },
    says: [
      /^apiserver on a is wrong: \S*\/apiserver\.key is missing\. Make it anew with kubeadm certs renew apiserver\.$/,
    ],
  },
  'the key of a CA is another one': {
    on: { did: async scene => put(scene, `${PKI}/ca.key`, encodePrivateKey((await foreign()).key)) },
    says: [/^a has a key in ca\.key that is not that of ca\.crt: copy both from another node\.$/],
  },
  'the key of a leaf is another one': {
    on: { did: async scene => put(scene, `${PKI}/etcd/peer.key`, encodePrivateKey((await foreign()).key)) },
    says: [/^etcd-peer on a is wrong: \S*\/etcd\/peer\.crt and its key do not belong together\. Make it anew with /],
  },
  'a foreign CA on one node, with all that it has signed': {
    on: { signers: withSigners(async () => ({ ca: await foreign() })) },
    says: [/^ca\.crt is not the same on a and b: copy ca\.crt and ca\.key from the node that is right, /],
  },
  'a foreign CA on one node, and nothing else': {
    on: { did: async scene => put(scene, CA, pem(await foreign())) },
    says: [/^ca\.crt is not the same on a and b: copy /, /^a has a key in ca\.key that is not that of ca\.crt: copy /],
  },
  'an expired CA': {
    everywhere: true,
    on: {
      signers: withSigners(async () => {
        // What it signed ends with it.
        const made = new Date(MADE.getTime() - days(10) + minutes(60));
        return { 'front-proxy-ca': await newSigner('front-proxy-ca', made, 10) };
      }),
    },
    says: [/^a and b have a CA in front-proxy-ca\.crt that ended at 2026-02-28T01:00:00Z: make another one as on the /],
  },
  'two CAs in a file, with comments': {
    on: { did: async scene => change(scene, CA, text => `# the old one\n${text}\n# by hand\n${OTHER_CA}`) },
    says: [/^a has more than one CA in ca\.crt: end the replacement that somebody has begun, /],
  },
  'a certificate with its whole chain': {
    on: { did: async scene => change(scene, `${PKI}/apiserver.crt`, text => text + OTHER_CA + pem(scene.signers.ca)) },
    says: [/^apiserver on a is wrong: \S*\/apiserver\.crt holds 3 certificates; expected one\. Make it anew with /],
  },
  'a kubeconfig that trusts a foreign CA': {
    on: {
      did: scene => {
        const data = Buffer.from(OTHER_CA).toString('base64');
        return change(scene, SCHEDULER, text => text.replace(/(authority-data: ).*/, `$1${data}`));
      },
    },
    says: [/^scheduler\.conf on a does not trust the CA of ca\.crt, or others as well: put that one into /],
  },
  'a kubeconfig that trusts nobody in particular': {
    on: { did: scene => change(scene, ADMIN, text => text.replace(/.*authority-data: .*\n/, '')) },
    says: [/^admin\.conf on a does not trust the CA of ca\.crt, /],
  },
  'a kubeconfig that is none': {
    on: { did: scene => put(scene, ADMIN, 'hello') },
    says: [/^a has a problem: \S*\/admin\.conf: expected a kubeconfig, found something else\. Mend that; /],
  },
  'a link into nothing': {
    on: { did: ({ host: { files } }) => files.symlink('/nowhere/ca.crt', CA) },
    says: [/^a has a problem: \S*\/ca\.crt is a link to \/nowhere\/ca\.crt, and nothing is there\. Mend that; /],
  },
  'a link to itself': {
    on: { did: ({ host: { files } }) => files.symlink('ca.crt', CA) },
    says: [/^a has a problem: \S*\/ca\.crt cannot be read: more than 40 symbolic links\. Mend that; /],
  },
  'a directory in the place of a file': {
    on: {
      did: async ({ host: { files } }) => {
        await files.remove(CA);
        await files.makeDirectory(CA);
      },
    },
    says: [/^a has a problem: \S*\/ca\.crt cannot be read: must be a file but is a directory\. Mend that; /],
  },
  'a file that cannot be read': {
    on: { host: unreadable(`${PKI}/etcd/server.crt`) },
    says: [/^a has a problem: \S*\/etcd\/server\.crt cannot be read: permission denied\. Mend that; /],
  },
  'a file of garbage': {
    on: { did: scene => put(scene, PROXY_CLIENT, 'garbage\n') },
    says: [/^a has a problem: \S*\/front-proxy-client\.crt: expected certificates: data does not contain any valid /],
  },
  'PEM of garbage': {
    on: { did: scene => put(scene, PROXY_CLIENT, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n') },
    says: [/^a has a problem: \S*\/front-proxy-client\.crt: expected certificates: the CERTIFICATE block at line 1: /],
  },
  'a file of other bytes': {
    on: { did: scene => put(scene, `${PKI}/apiserver.crt`, Buffer.from([0, 255, 254, 0])) },
    says: [/^a has a problem: \S*\/apiserver\.crt: expected UTF-8 text, found other bytes\. Mend that; /],
  },
  'an empty file': {
    on: { did: scene => put(scene, CA, '') },
    says: [/^a has a problem: \S*\/ca\.crt: expected certificates: data does not contain any valid /],
  },
  'a huge file': {
    on: { did: scene => put(scene, CA, Buffer.alloc(2 * 1024 * 1024, 'a')) },
    says: [/^a has a problem: \S*\/ca\.crt cannot be read: has 2097152 bytes; expected at most 1048576\. Mend that; /],
  },
};

const OTHER_CA = pem(await foreign());

describe('hostile folders', () => {
  for (const [what, { on, says, everywhere }] of Object.entries(HOSTILE)) {
    test(what, async () => {
      const strange: Strange = { ...on, did: scene => noted(scene, on.did) };
      const server = { role: 'control-plane', ...(everywhere && on) } as const;
      const cluster = await AdoptedScene.create(strange, { b: server, w: { role: 'worker' } });
      try {
        const refusal = await cluster.refusal();
        assert.equal(refusal.length, says.length, refusal.join('\n'));
        for (const [index, pattern] of says.entries()) assert.match(refusal[index] ?? '', pattern);
        // Nothing is asked of anybody, nothing copied, and agents by themselves leave everything as it is.
        const { items } = await cluster.a.kube.list(SECRETS, { namespace: PKI_NAMESPACE });
        assert.deepEqual(items, []);
        for (const name of ['a', 'b', 'w'])
          await assert.rejects(cluster.a.kube.get(CONFIG_MAPS, wantedKey(name)), /not found/);
        assert.deepEqual(await snapshot(cluster.a.host, ...FOLDERS), before.get(cluster.a));
        assert.deepEqual(cluster.a.host.asked, []);
      } finally {
        await cluster.close();
      }
    });
  }
});

/** How a node was when somebody had been there. */
const before = new WeakMap<Scene, ReadonlyMap<string, string>>();

async function noted(scene: Scene, did: Strange['did']): Promise<void> {
  await did?.(scene);
  before.set(scene, await snapshot(scene.host, ...FOLDERS));
}

const LEAVES = KUBEADM_CHAINS.map(({ name }) => name).filter(name => name !== 'kubelet.conf');
const signedBy = (signer: string) => KUBEADM_CHAINS.filter(chain => chain.signer === signer).map(({ name }) => name);

const UNUSUAL: Readonly<
  Record<string, { readonly on: Strange; readonly watched?: readonly RegExp[]; readonly stay?: readonly string[] }>
> = {
  ECDSA: { on: {} },
  'RSA-3072': { on: { signers: withSigners(async () => ({ ca: await rsaSigner() })) } },
  'comments around a CA': { on: { did: scene => change(scene, CA, text => `# of ours\n${text}# the end\n`) } },
  'lines that end otherwise': { on: { did: scene => change(scene, CA, text => text.replaceAll('\n', '\r\n')) } },
  'links to files elsewhere': {
    on: {
      did: async ({ host: { files } }) => {
        for (const name of ['ca.crt', 'ca.key', 'apiserver.crt', 'apiserver.key']) {
          await files.makeDirectory('/etc/pki/cluster');
          await files.copy(posix.join(PKI, name), posix.join('/etc/pki/cluster', name));
          await files.symlink(posix.join('/etc/pki/cluster', name), posix.join(PKI, name));
        }
      },
    },
  },
  'a CA that another one has signed': {
    on: { signers: withSigners(async () => ({ ca: await subordinate() })) },
  },
  'an external CA': {
    on: { did: scene => remove(scene, `${PKI}/ca.key`) },
    watched: [/^ca is an external CA \(no node has ca\.key\): what it signs is only watched, /],
    stay: signedBy('ca'),
  },
  'an external etcd': {
    on: {
      did: async scene => {
        for (const name of ['server', 'peer', 'healthcheck-client'])
          for (const end of ['crt', 'key']) await remove(scene, `${PKI}/etcd/${name}.${end}`);
        await remove(scene, `${PKI}/etcd/ca.key`);
        await remove(scene, manifest('etcd'));
      },
    },
    watched: [/^etcd is external: its certificates are only watched\.$/],
    stay: signedBy('etcd-ca'),
  },
};

describe('unusual folders', () => {
  for (const [what, { on, watched = [], stay = [] }] of Object.entries(UNUSUAL)) {
    test(what, async () => {
      const cluster = await AdoptedScene.create({ ...on, did: scene => noted(scene, on.did) });
      const { a } = cluster;
      try {
        await cluster.until(({ adopted, waitingFor }) => adopted && waitingFor.length === 0);
        assert.deepEqual(await snapshot(a.host, ...FOLDERS), before.get(a));
        const report = await a.report();
        assert.ok(report !== undefined);
        const nodes = [{ name: 'a', report, isControlPlane: true }];
        assert.equal(onlyWatched(nodes).length, watched.length);
        for (const [index, pattern] of watched.entries()) assert.match(onlyWatched(nodes)[index] ?? '', pattern);
        const secrets = (await a.kube.list(SECRETS, { namespace: PKI_NAMESPACE })).items.map(
          ({ metadata }) => metadata?.name,
        );
        const ours = KUBEADM_SIGNERS.map(({ name }) => name).filter(name => !stay.includes(signedBy(name)[0] ?? ''));
        assert.deepEqual(new Set(secrets), new Set(ours));
        // Everything is due at once.
        await cluster.until(({ round }) => round !== undefined, { refresh: 0.000_001 });
        const renewed = await a.until('a round', async () => {
          const found = await a.report();
          return found?.done === undefined || found.done === report.done ? undefined : found;
        });
        for (const name of LEAVES) {
          const old: string | undefined = report.leaves[name]?.digest;
          assert.equal(old === renewed.leaves[name]?.digest, stay.includes(name) || old === undefined, name);
        }
        assert.equal(renewed.problem, undefined);
        const changed = [...(await snapshot(a.host, ...FOLDERS))].filter(
          ([path, text]) => before.get(a)?.get(path) !== text,
        );
        assert.ok(
          changed.every(([path]) => path !== CA && !path.endsWith('/ca.key')),
          changed.map(([path]) => path).join(),
        );
      } finally {
        await cluster.close();
      }
    });
  }
});

function rsaSigner(): Promise<CertificateAndKey> {
  return issueSigner({
    keys: systemKeys,
    now: MADE,
    commonName: 'kubernetes',
    lifetimeMs: days(3650),
    algorithm: 'RSA-3072',
  });
}

/** Only what stands above it is not in the file. */
async function subordinate(): Promise<CertificateAndKey> {
  const signer = await foreign();
  const lifetimeMs = days(1000);
  const made = await issueIntermediate({ keys: systemKeys, now: MADE, commonName: 'kubernetes', lifetimeMs, signer });
  return { ...made, chain: made.chain.slice(0, 1) };
}
