/**
 * Other keys for the service accounts of a cluster that kubeadm made, on the rig of real parts: taken back once, handed over, retired. Pods
 * use the API with their tokens all the time, and somebody outside with the token of a Secret; nobody may be refused (spec 80, 7).
 */
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { annotationsOf, dataText } from '../../../src/certrotation/secret.ts';
import type { Access } from '../../../src/kube/access.ts';
import { HttpKube } from '../../../src/kube/client.ts';
import { isTransient, KubeError } from '../../../src/kube/error.ts';
import { loadAccess } from '../../../src/kube/kubeconfig.ts';
import { CONFIG_MAPS, PODS, SECRETS } from '../../../src/kube/resource.ts';
import { ROTUNDA_NAMESPACE } from '../../../src/kubeadm/names.ts';
import { NO_SECRET_TOKENS, TOKENS_SINCE } from '../../../src/kubeadm/operator/names.ts';
import { publicKeyDigests, SERVICE_ACCOUNT_KEYS } from '../../../src/kubeadm/service-account-keys.ts';
import { rigProblem } from '../rig/rig.ts';
import { AdoptedCluster, ROTUNDA_IMAGE, tell } from './adopted-cluster.ts';
import { ClusterLoad } from './cluster-load.ts';

const PUB = '/etc/kubernetes/pki/sa.pub';
const KEY = '/etc/kubernetes/pki/sa.key';
const SECRET = { namespace: 'load', name: 'outside' };
const ASK_EVERY_MS = 300;
const controlPlanes = Number(process.env.ROTUNDA_CONTROL_PLANES ?? 1);
/** The only kube-apiserver is away while it restarts. */
const wasAway = controlPlanes === 1;
const problem = await rigProblem();

describe('other keys for service accounts', { skip: problem ?? false }, () => {
  let cluster: AdoptedCluster;
  let load: ClusterLoad;
  let outside: SecretUser;

  before(async () => {
    cluster = await AdoptedCluster.start({ controlPlanes, workers: 1 });
    load = await ClusterLoad.start(cluster);
    outside = await SecretUser.start(cluster);
    await cluster.rotunda('adopt', 'kubeadm', '--image', ROTUNDA_IMAGE, '--yes');
    await cluster.isQuiet();
  });

  after(async () => {
    await outside?.stop();
    await load?.stop();
    if (load !== undefined) tell(await load.sum());
    if (outside !== undefined)
      tell(`token of a Secret: used ${outside.used} times, refused ${outside.refused.length} times`);
    await cluster?.close();
  });

  test('the plan names the restarts and the Secret, and writes nothing', async () => {
    const files = await cluster.files();
    const text = (await cluster.rotunda('rotate', 'sa', '--plan')).replaceAll(/\s+/g, ' ');
    assert.match(text, /2 Distribute sa\.pub gets the next public key .* Restarts kube-apiserver on each/);
    assert.match(text, /accepted for 365 days more \(--service-account-extend-token-expiration, which is on\)/);
    assert.match(text, /load\/outside \(last used 20\d\d-\d\d-\d\d\)/);
    assert.equal(await cluster.files(), files);
  });

  test('taken back before it signs, every file is as it was', async () => {
    const files = await cluster.files();
    // Nobody starts kube-apiserver anew, so that it has not begun with both.
    await cluster.first.kubelet.stop();
    await cluster.rotunda('rotate', 'sa', '--yes', '--no-follow');
    await cluster.eventually('both public keys on the first node', async () => (await publicKeys()).length === 2);
    await cluster.rotunda('rotate', 'sa', '--take-back', '--yes', '--no-follow');
    await cluster.eventually('one public key again', async () => (await publicKeys()).length === 1);
    await cluster.first.kubelet.start();
    await cluster.isQuiet();
    assert.equal(await cluster.files(), files);
    await refusedNobody();
  });

  test('another key signs, and nobody is refused', async () => {
    const [before] = await publicKeys();
    const output = await cluster.rotunda('rotate', 'sa', '--yes');
    assert.match(output, /tokens are signed with the key [0-9a-f]{12} on every control-plane node/);
    assert.match(output, /tokens that do not end keep the key before accepted, in\s+load\/outside/);
    const [signs, second] = await publicKeys();
    assert.equal(second, before);
    assert.notEqual(signs, before);
    for (const node of cluster.controlPlane) {
      const key = createPublicKey(await node.read(KEY))
        .export({ format: 'pem', type: 'spki' })
        .toString();
      assert.deepEqual(publicKeyDigests(key), [signs]);
    }
    await cluster.isQuiet();
    await refusedNobody();
  });

  test('and turned round, the one before signs again; then the other one once more', async () => {
    const [next, before] = await publicKeys();
    await cluster.rotunda('rotate', 'sa', '--take-back', '--yes');
    assert.deepEqual(await publicKeys(), [before, next]);
    await refusedNobody();
    await cluster.rotunda('rotate', 'sa', '--take-back', '--yes');
    assert.deepEqual(await publicKeys(), [next, before]);
    await refusedNobody();
  });

  test('the key before leaves when somebody says so, and the Secret gets a token of the other one', async () => {
    // An hour in which kubelets bring pods other tokens is over at once: all pods are made anew.
    for (const namespace of [ROTUNDA_NAMESPACE, 'load']) {
      for (const { metadata } of (await cluster.kube.list(PODS, { namespace })).items)
        await cluster.kube.delete(PODS, { namespace, name: metadata?.name ?? '' });
    }
    await cluster.isQuiet();
    const found = annotationsOf(await cluster.kube.get(SECRETS, SERVICE_ACCOUNT_KEYS));
    assert.equal(found[NO_SECRET_TOKENS], undefined);
    const annotations = { [TOKENS_SINCE]: new Date(Date.now() - 3_600_000).toISOString() };
    await cluster.kube.patch(SECRETS, SERVICE_ACCOUNT_KEYS, { type: 'merge', body: { metadata: { annotations } } });
    // Whoever holds the old token is refused from now on, and is given the other one.
    await outside.stop();
    assert.deepEqual(outside.refused, []);
    const old = outside.token;
    const output = await cluster.rotunda('rotate', 'sa', '--retire', '--yes');
    assert.match(output, /Secret load\/outside has another token/);
    const keys = await publicKeys();
    assert.equal(keys.length, 1);
    const token = dataText(await cluster.kube.get(SECRETS, SECRET), 'token') ?? '';
    assert.notEqual(token, old);
    const pub = await cluster.first.read(PUB);
    assert.ok(isSignedBy(token, pub) && !isSignedBy(old, pub));
    outside = await SecretUser.start(cluster);
    assert.match(await outside.answerTo(old), /401/);
    assert.equal(await outside.answerTo(token), 'accepted');
    await cluster.isQuiet();
    await refusedNobody();
    const left = await cluster.first.output('sh', '-c', 'grep -rl rotunda /etc/kubernetes || true');
    assert.equal(left, '');
  });

  test('kubeadm goes on with it, and so does a release', async () => {
    await cluster.isKnownToKubeadm();
    await cluster.rotunda('release', 'kubeadm', '--yes');
    assert.equal((await publicKeys()).length, 1);
    await refusedNobody();
  });

  async function refusedNobody(): Promise<void> {
    assert.deepEqual(outside.refused, []);
    await load.refusedNobody({ wasAway });
  }

  async function publicKeys(): Promise<string[]> {
    return publicKeyDigests(await cluster.first.read(PUB));
  }
});

function isSignedBy(token: string, pub: string): boolean {
  const [header = '', body = '', signature = ''] = token.split('.');
  return verify('sha256', Buffer.from(`${header}.${body}`), createPublicKey(pub), Buffer.from(signature, 'base64url'));
}

/** Somebody outside the cluster who was given the token in a Secret. */
class SecretUser {
  readonly token: string;
  /** Answers that a client with a good token never gets. */
  readonly refused: string[] = [];
  used = 0;
  readonly #cluster: AdoptedCluster;
  readonly #stop = new AbortController();
  readonly #using: Promise<void>;

  private constructor(cluster: AdoptedCluster, token: string) {
    this.#cluster = cluster;
    this.token = token;
    this.#using = this.#use();
  }

  static async start(cluster: AdoptedCluster): Promise<SecretUser> {
    const { kube } = cluster;
    const find = async () => dataText(await kube.get(SECRETS, SECRET), 'token') ?? '';
    const annotations = { 'kubernetes.io/service-account.name': 'default' };
    const secret = { metadata: { ...SECRET, annotations }, type: 'kubernetes.io/service-account-token' };
    const isThere = (await kube.list(SECRETS, { namespace: SECRET.namespace })).items.length > 0;
    if (!isThere) await kube.create(SECRETS, secret);
    await cluster.eventually('a token in the Secret', async () => (await find()) !== '');
    return new SecretUser(cluster, await find());
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#using;
  }

  /** `accepted`, or what was said. */
  async answerTo(token: string): Promise<string> {
    for (;;) {
      const answer = await this.#ask(token);
      if (answer !== undefined) return answer;
      await pause(ASK_EVERY_MS);
    }
  }

  async #use(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const answer = await this.#ask(this.token);
      if (answer === 'accepted') this.used++;
      // A kube-apiserver that starts knows no roles yet; who is not known at all is told 401.
      else if (answer !== undefined && !answer.startsWith('403'))
        this.refused.push(`${new Date().toISOString()} ${answer}`);
      await pause(ASK_EVERY_MS);
    }
  }

  /** Undefined: nobody answers at the moment. Each time with a connection of its own. */
  async #ask(token: string): Promise<string | undefined> {
    const kube = new HttpKube(await withToken(this.#cluster, token));
    try {
      await kube.list(CONFIG_MAPS, { namespace: SECRET.namespace, limit: 1 });
      return 'accepted';
    } catch (error) {
      if (error instanceof KubeError && !isTransient(error)) return `${error.code} ${error.message}`;
      return undefined;
    } finally {
      await kube.close();
    }
  }
}

/** The way of the person on the first node, with a token in place of the certificate. */
async function withToken({ admin }: AdoptedCluster, token: string): Promise<Access> {
  const access = await loadAccess({ path: admin });
  const { server, tls } = await access.connection();
  const connection = { server, tls: { ca: tls.ca }, headers: { authorization: `Bearer ${token}` } };
  return { namespace: SECRET.namespace, connection: async () => connection, refused: () => false };
}
