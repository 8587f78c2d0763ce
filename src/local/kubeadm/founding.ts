import { createPublicKey } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootedFiles } from '../../host/directory-disk.ts';
import type { HostFiles } from '../../host/port.ts';
import { sleep, systemClock } from '../../kube/clock.ts';
import { days, formatGoDuration, seconds } from '../../kube/duration.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type KubeadmChain, type SignerName } from '../../kubeadm/chains.ts';
import { CERTIFICATES_DIRECTORY, KUBE_APISERVER_PORT, KUBELET_DIRECTORY } from '../../kubeadm/names.ts';
import { belongsTo } from '../../kubeadm/node/leaf.ts';
import {
  KEY_MODE,
  KUBELET_CLIENT,
  KUBELET_CONF,
  kubeconfigPlace,
  leafPlace,
  manifestPlace,
  type PairPlace,
  placesOf,
  signerPlace,
} from '../../kubeadm/node/places.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readCertificates, readPrivateKey } from '../../pki/pem.ts';
import type { Founding, PlannedNode } from '../layout.ts';
import { type Issuing, newAuthority, newLeaf } from './certificates.ts';
import { kubeconfigText } from './kubeconfig.ts';
import { manifestsOf } from './manifests.ts';

/** The files of a CA: all that is trusted, and the pair that signs. */
interface Authority {
  readonly trusted: readonly Certificate[];
  readonly pair: CertificateAndKey;
}

type Authorities = Readonly<Record<SignerName, Authority>>;

const PLACES = placesOf(CERTIFICATES_DIRECTORY);
/** Worth more than their pod: whoever reads them can act for it. */
const MANIFEST_MODE = 0o600;

/**
 * What `kubeadm init` and `kubeadm join` leave on the disks of nodes. A node that has been through it is never touched again: its files are
 * those of whoever looks after them. Cut off at any moment, the next run goes on.
 */
export async function foundCluster(founding: Founding): Promise<void> {
  const { nodes, dayMs = days(1), keyAlgorithm = 'RSA-2048', url } = founding;
  const controlPlane = nodes.filter(({ role }) => role === 'control-plane');
  const [first, ...others] = controlPlane;
  if (first === undefined) throw new RangeError('expected a control-plane node, found none');
  keepRotationDay(founding.dir, dayMs);
  for (const { root } of nodes) mkdirSync(root, { recursive: true });
  await refuseGrowth(first, others);
  const issuing = { keys: systemKeys, now: systemClock.now(), algorithm: keyAlgorithm, dayMs };
  const disk = rootedFiles(first.root);
  const authorities = await ensureAuthorities(disk, issuing);
  await ensureTokenKey(disk, issuing);
  let isNew = false;
  for (const node of nodes) {
    const files = rootedFiles(node.root);
    if (await isFounded(files, node)) continue;
    isNew = true;
    const install = new Installation(node, files, authorities, issuing, url);
    await install.kubelet();
    if (node.role === 'worker') await install.trust();
    else await install.controlPlane(disk, controlPlane);
    await install.end(controlPlane);
  }
  // Containers tell their start in whole seconds: what they read is to be older in everybody's eyes.
  if (isNew) await sleep(systemClock, seconds(1));
}

/** What has been issued keeps its length, and so does whatever takes its place. */
function keepRotationDay(dir: string, dayMs: number): void {
  const path = join(dir, 'rotation-day');
  const wanted = formatGoDuration(dayMs);
  const kept = existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
  if (kept !== undefined && kept !== wanted)
    throw new Error(`expected --rotation-day ${kept}, with which this cluster began, found ${wanted}`);
  if (kept !== undefined) return;
  writeFileSync(`${path}.tmp`, `${wanted}\n`);
  renameSync(`${path}.tmp`, path);
}

/** What is written last. */
function lastFileOf({ role }: PlannedNode): string {
  return role === 'worker' ? kubeconfigPlace(KUBELET_CONF) : manifestPlace('kube-apiserver');
}

async function isFounded(files: HostFiles, node: PlannedNode): Promise<boolean> {
  return (await files.stat(lastFileOf(node))) !== undefined;
}

/** A member of etcd more would have to be let in by the others, which `kubeadm join` does and nobody here. */
async function refuseGrowth(first: PlannedNode, others: readonly PlannedNode[]): Promise<void> {
  if (!(await isFounded(rootedFiles(first.root), first))) return;
  for (const node of others) {
    if (await isFounded(rootedFiles(node.root), node)) continue;
    throw new Error(
      `expected the control-plane nodes that this cluster began with, found ${node.name} as another one: their number stays as it is`,
    );
  }
}

async function ensureAuthorities(files: HostFiles, issuing: Issuing): Promise<Authorities> {
  const found: Partial<Record<SignerName, Authority>> = {};
  for (const signer of KUBEADM_SIGNERS) {
    const place = signerPlace(PLACES, signer.name);
    const there = await authorityAt(files, place);
    if (there !== undefined) {
      found[signer.name] = there;
      continue;
    }
    const pair = await newAuthority(signer, issuing);
    await writePair(files, place, pair);
    found[signer.name] = { trusted: pair.chain, pair };
  }
  return found as Authorities;
}

/** Undefined where no certificate of the file belongs to the key, as when the last founding was cut off between the two. */
async function authorityAt(files: HostFiles, { certificate, key }: PairPlace): Promise<Authority | undefined> {
  const [text, keyText] = [await files.read(certificate), await files.read(key)];
  if (text === undefined || keyText === undefined) return undefined;
  const trusted = readCertificates(text.toString()).certificates;
  const own = readPrivateKey(keyText.toString());
  const signing = trusted.find(ca => belongsTo(own, ca));
  return signing && { trusted, pair: { chain: [signing], key: own } };
}

async function writePair(files: HostFiles, { certificate, key }: PairPlace, pair: CertificateAndKey): Promise<void> {
  await files.write(key, Buffer.from(encodePrivateKey(pair.key)), { mode: KEY_MODE });
  await files.write(certificate, Buffer.from(encodeCertificates(pair.chain)), { mode: 0o644 });
}

async function ensureTokenKey(files: HostFiles, { keys, algorithm }: Issuing): Promise<void> {
  if ((await files.stat(PLACES.serviceAccountPublic)) !== undefined) return;
  const key = await keys.generate(algorithm);
  const publicText = createPublicKey(key).export({ format: 'pem', type: 'spki' });
  await files.write(PLACES.serviceAccountKey, Buffer.from(encodePrivateKey(key)), { mode: KEY_MODE });
  await files.write(PLACES.serviceAccountPublic, Buffer.from(publicText), { mode: KEY_MODE });
}

/** What one node is given. */
class Installation {
  readonly #node: PlannedNode;
  readonly #files: HostFiles;
  readonly #authorities: Authorities;
  readonly #issuing: Issuing;
  readonly #url: string;

  constructor(node: PlannedNode, files: HostFiles, authorities: Authorities, issuing: Issuing, url: string) {
    this.#node = node;
    this.#files = files;
    this.#authorities = authorities;
    this.#issuing = issuing;
    this.#url = url;
  }

  /** In the form in which a kubelet keeps it: a dated file with both, and a link to it. */
  async kubelet(): Promise<void> {
    const { chain, key } = await this.#leaf(chainNamed(KUBELET_CONF));
    const stamp = this.#issuing.now.toISOString().slice(0, 19).replaceAll(/[T:]/g, '-');
    const dated = `${KUBELET_DIRECTORY}/kubelet-client-${stamp}.pem`;
    const pem = encodeCertificates(chain) + encodePrivateKey(key);
    await this.#files.write(dated, Buffer.from(pem), { mode: KEY_MODE, directoryMode: 0o755 });
    await this.#files.symlink(dated, KUBELET_CLIENT);
  }

  /** A worker trusts, and has no keys. */
  async trust(): Promise<void> {
    const { trusted } = this.#authorities.ca;
    const { certificate } = signerPlace(PLACES, 'ca');
    await this.#files.write(certificate, Buffer.from(encodeCertificates(trusted)), { mode: 0o644 });
  }

  async controlPlane(firstDisk: HostFiles, controlPlane: readonly PlannedNode[]): Promise<void> {
    const isFirst = controlPlane[0] === this.#node;
    if (!isFirst) await this.#shared(firstDisk);
    for (const chain of KUBEADM_CHAINS) {
      if (chain.name === KUBELET_CONF || (chain.isOptional === true && !isFirst)) continue;
      const made = await this.#leaf(chain);
      const place = leafPlace(PLACES, chain);
      if (place !== undefined) await writePair(this.#files, place, made);
      else await this.#kubeconfig(chain.name, userOf(chain, this.#node), made);
    }
  }

  async end(controlPlane: readonly PlannedNode[]): Promise<void> {
    await this.#kubeconfig(KUBELET_CONF, userOf(chainNamed(KUBELET_CONF), this.#node), KUBELET_CLIENT);
    if (this.#node.role === 'worker') return;
    const { name, address } = this.#node;
    const { 'kube-apiserver': last, ...texts } = manifestsOf({
      name,
      address,
      members: controlPlane,
      dayMs: this.#issuing.dayMs,
    });
    for (const [component, text] of [...Object.entries(texts), ['kube-apiserver', last] as const])
      await this.#files.write(manifestPlace(component), Buffer.from(text), { mode: MANIFEST_MODE });
  }

  /** What all control-plane nodes have alike; `kubeadm join --control-plane` fetches it. */
  async #shared(firstDisk: HostFiles): Promise<void> {
    const pairs = KUBEADM_SIGNERS.map(({ name }) => signerPlace(PLACES, name));
    const files = [
      ...pairs.flatMap(({ certificate, key }) => [key, certificate]),
      PLACES.serviceAccountKey,
      PLACES.serviceAccountPublic,
    ];
    for (const path of files) {
      const content = await firstDisk.read(path);
      const mode = (await firstDisk.stat(path))?.mode;
      if (content === undefined || mode === undefined) throw new Error(`expected ${path} on the first node`);
      await this.#files.write(path, content, { mode });
    }
  }

  #leaf(chain: KubeadmChain): Promise<CertificateAndKey> {
    return newLeaf(chain, this.#node, this.#authorities[chain.signer].pair, this.#issuing);
  }

  async #kubeconfig(file: string, user: string, client: CertificateAndKey | string): Promise<void> {
    // Processes of the control plane go to the kube-apiserver of their own node, everybody else to the endpoint of all.
    const server = LOCAL_CLIENTS.has(file) ? `https://${this.#node.address}:${KUBE_APISERVER_PORT}` : this.#url;
    const text = kubeconfigText({ server, cas: this.#authorities.ca.trusted, user, client });
    await this.#files.write(kubeconfigPlace(file), Buffer.from(text), { mode: KEY_MODE });
  }
}

const LOCAL_CLIENTS = new Set(['controller-manager.conf', 'scheduler.conf']);

function userOf({ creator }: KubeadmChain, node: PlannedNode): string {
  const name = creator.kind === 'client' ? creator.user.name : creator.commonName;
  return name.replace('<node>', node.name);
}

function chainNamed(name: string): KubeadmChain {
  const chain = KUBEADM_CHAINS.find(candidate => candidate.name === name);
  if (chain === undefined) throw new RangeError(`there is no chain ${name}`);
  return chain;
}
