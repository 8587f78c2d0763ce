import type { KeyObject } from 'node:crypto';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Host, HostFiles } from '../../host/port.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { isPkiError } from '../../pki/error.ts';
import { readCertificates, readPrivateKey } from '../../pki/pem.ts';
import { Recent } from '../../pki/recent.ts';
import { caDigest } from '../../trust/receipts.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type KubeadmChain, type SignerName } from '../chains.ts';
import { nodeFoldersIn } from '../files.ts';
import { keyDigest, publicKeyDigests } from '../service-account-keys.ts';
import { type BeforeCopy, readBefore } from './before.ts';
import { digestOf, type FileText, NodeFault, readFileText } from './file-text.ts';
import { KubeconfigText } from './kubeconfig-text.ts';
import { belongsTo, signerOf } from './leaf.ts';
import { ManifestText } from './manifest-text.ts';
import { begunPairs, type PairFiles } from './pair.ts';
import {
  KUBECONFIGS,
  KUBELET_CLIENT,
  KUBELET_CONF,
  kubeconfigPlace,
  leafPlace,
  manifestPlace,
  type PairPlace,
  type Places,
  signerPlace,
} from './places.ts';
import { kubeletStartedAt, runningPods } from './running.ts';
import {
  COMPONENTS,
  type Component,
  type KubeconfigFile,
  type LeafFiles,
  type NodeSight,
  type ServiceAccountFiles,
  type SignerFiles,
  type StaticPod,
} from './sight.ts';
import { restartDigest, startOnlyFiles } from './start-only.ts';

export interface LookOptions {
  readonly host: Host;
  readonly places: Places;
  readonly nodeName: string;
  /** Those of the node, as the API shows them. */
  readonly pods: readonly Pod[];
}

/** Looks at everything of a node. What cannot be read becomes a fault of the sight; never throws for what others left there. */
export async function lookAtNode({ host, places, nodeName, pods }: LookOptions): Promise<NodeSight> {
  const { files } = host;
  const faults: string[] = [];
  const attempt = async <T>(read: () => Promise<T | undefined>): Promise<T | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof NodeFault)) throw error;
      // A file may be read by several.
      if (!faults.includes(error.message)) faults.push(error.message);
      return undefined;
    }
  };
  const collect = async <K, T>(names: readonly K[], read: (name: K) => Promise<T | undefined>): Promise<Map<K, T>> => {
    const found = new Map<K, T>();
    for (const name of names) {
      const value = await attempt(() => read(name));
      if (value !== undefined) found.set(name, value);
    }
    return found;
  };
  const kind = (await attempt(() => kindOf(files, places))) ?? WORKER;
  const signerNames = KUBEADM_SIGNERS.map(({ name }) => name);
  const signers = await collect<SignerName, SignerFiles>(signerNames, name =>
    signerFiles(files, signerPlace(places, name)),
  );
  const signing = await attempt(() => signerFiles(files, places.signing));
  const kubeconfigs = await collect<string, KubeconfigFile>(KUBECONFIGS, file => kubeconfigFile(files, file));
  const leaves = await collect<string, LeafFiles>(
    KUBEADM_CHAINS.map(({ name }) => name),
    name => leafFiles(files, places, chainNamed(name), kubeconfigs, signers),
  );
  const running = runningPods(pods, nodeName);
  const staticPods = await collect<Component, StaticPod>(COMPONENTS, async component => {
    const pod = await staticPod(files, component);
    return pod && { ...pod, running: running.get(component) };
  });
  const serviceAccount = await attempt(() => serviceAccountFiles(files, places));
  const before = await beforeCopies(
    files,
    places,
    [
      ...[...signers.values()].flatMap(({ file, keyFile }) => [file, keyFile]),
      ...[...kubeconfigs.values()].map(({ file }) => file),
      ...[...staticPods.values()].map(({ file }) => file),
      serviceAccount?.keyFile,
      serviceAccount?.publicFile,
    ],
    attempt,
  );
  return {
    nodeName,
    places,
    ...kind,
    signers,
    signing,
    leaves,
    kubeconfigs,
    pods: staticPods,
    kubelet: {
      startedAt: await kubeletStartedAt(files),
      mustRestart: (await files.stat(places.kubeletRestart)) !== undefined,
      askedWith: (await attempt(() => readFileText(files, places.kubeletKey)))?.text,
    },
    serviceAccount,
    keys: keysIn([...signers.values(), ...(signing === undefined ? [] : [signing])], before),
    tokenKeys: tokenKeysIn(serviceAccount, before),
    before,
    own: await ownFolder(files, places),
    published: new Set(),
    begun: (await attempt(() => begunPairs(files, pairsOf(places, signers, signing, leaves)))) ?? [],
    faults,
  };
}

const WORKER = { role: 'worker', etcd: 'external' } as const;

function chainNamed(name: string): KubeadmChain {
  return KUBEADM_CHAINS.find(chain => chain.name === name) as KubeadmChain;
}

/** By which files of the layout are there. */
async function kindOf(files: HostFiles, places: Places): Promise<Pick<NodeSight, 'role' | 'etcd'>> {
  const candidates = [
    ...KUBEADM_SIGNERS.map(({ name }) => signerPlace(places, name)).flatMap(({ certificate, key }) => [
      certificate,
      key,
    ]),
    ...KUBEADM_CHAINS.map(chain => leafPlace(places, chain)?.certificate ?? ''),
    ...KUBECONFIGS.map(kubeconfigPlace),
    ...COMPONENTS.map(manifestPlace),
    places.serviceAccountKey,
    places.serviceAccountPublic,
  ];
  const there = new Set<string>();
  for (const path of candidates.filter(Boolean)) {
    const stat = await files.stat(path).catch((error: Error) => {
      throw new NodeFault(`${path} cannot be read: ${error.message}`);
    });
    if (stat !== undefined) there.add(path.slice(1));
  }
  const found = nodeFoldersIn(there).find(({ certificates }) => `/${certificates}` === places.certificates);
  return found === undefined || found.role === 'worker' ? WORKER : { role: found.role, etcd: found.etcd };
}

function certificatesOf({ path }: Pick<FileText, 'path'>, text: string): Certificate[] {
  try {
    return readCertificates(text).certificates;
  } catch (error) {
    if (isPkiError(error)) throw new NodeFault(`${path}: expected certificates: ${error.message}`);
    throw error;
  }
}

/** A key that is not there or not one gives none: the certificate says what it should be. */
function keyOf(text: string | undefined): KeyObject | undefined {
  if (text === undefined) return undefined;
  try {
    return keysRead.get(digestOf(text), () => readPrivateKey(text));
  } catch (error) {
    if (isPkiError(error)) return undefined;
    throw error;
  }
}

/** A node is looked at often, and its keys mostly stay. */
const keysRead = new Recent<KeyObject>(64);

async function signerFiles(files: HostFiles, place: PairPlace): Promise<SignerFiles | undefined> {
  const file = await readFileText(files, place.certificate);
  if (file === undefined) return undefined;
  const cas = certificatesOf(file, file.text);
  const keyFile = await readFileText(files, place.key);
  const key = keyOf(keyFile?.text);
  const [first] = cas;
  const isOwn = key !== undefined && first !== undefined && belongsTo(key, first);
  return { place, file, cas, keyFile, key: isOwn ? key : undefined };
}

async function kubeconfigFile(files: HostFiles, name: string): Promise<KubeconfigFile | undefined> {
  const file = await readFileText(files, kubeconfigPlace(name));
  if (file === undefined) return undefined;
  const config = new KubeconfigText(file.text, file.path);
  const { authorities } = config;
  return { file, config, authorities: authorities === undefined ? [] : certificatesOf(file, authorities) };
}

async function leafFiles(
  files: HostFiles,
  places: Places,
  chain: KubeadmChain,
  kubeconfigs: ReadonlyMap<string, KubeconfigFile>,
  signers: ReadonlyMap<SignerName, SignerFiles>,
): Promise<LeafFiles | undefined> {
  const place = leafPlace(places, chain);
  const found = place === undefined ? await inKubeconfig(files, chain, kubeconfigs) : await inPair(files, place);
  if (found === undefined) return undefined;
  const { file, keyFile, text, keyText } = found;
  const [certificate, ...others] = certificatesOf(file, text);
  if (certificate === undefined) return undefined;
  const key = keyOf(keyText);
  return {
    chain,
    place,
    file,
    keyFile,
    certificate,
    count: 1 + others.length,
    keyFits: key !== undefined && belongsTo(key, certificate),
    signedBy: signerOf(certificate, signers.get(chain.signer)?.cas ?? []),
  };
}

interface LeafText {
  readonly file: FileText;
  readonly keyFile?: FileText | undefined;
  readonly text: string;
  readonly keyText: string | undefined;
}

async function inPair(files: HostFiles, place: PairPlace): Promise<LeafText | undefined> {
  const file = await readFileText(files, place.certificate);
  if (file === undefined) return undefined;
  const keyFile = await readFileText(files, place.key);
  return { file, keyFile, text: file.text, keyText: keyFile?.text };
}

/** The kubelet's own is where its kubeconfig points to. */
async function inKubeconfig(
  files: HostFiles,
  { name }: KubeadmChain,
  kubeconfigs: ReadonlyMap<string, KubeconfigFile>,
): Promise<LeafText | undefined> {
  const kubeconfig = kubeconfigs.get(name);
  if (kubeconfig === undefined) return undefined;
  const { file, config } = kubeconfig;
  if (config.certificate !== undefined) return { file, text: config.certificate, keyText: config.key };
  if (name !== KUBELET_CONF)
    throw new NodeFault(`${file.path}: expected a client certificate inside the file, found none`);
  const pem = await readFileText(files, config.certificateFile ?? KUBELET_CLIENT);
  return pem && { file: pem, text: pem.text, keyText: pem.text };
}

async function staticPod(files: HostFiles, component: Component): Promise<Omit<StaticPod, 'running'> | undefined> {
  const file = await readFileText(files, manifestPlace(component));
  if (file === undefined) return undefined;
  const manifest = new ManifestText(file.text, file.path);
  const inputs: FileText[] = [];
  for (const path of startOnlyFiles(component, manifest)) {
    const input = await readFileText(files, path);
    if (input !== undefined) inputs.push(input);
  }
  return { component, file, manifest, inputs, digest: restartDigest(inputs) };
}

async function serviceAccountFiles(files: HostFiles, places: Places): Promise<ServiceAccountFiles | undefined> {
  const publicFile = await readFileText(files, places.serviceAccountPublic);
  if (publicFile === undefined) return undefined;
  const keyFile = await readFileText(files, places.serviceAccountKey);
  const key = keyOf(keyFile?.text);
  const accepts = publicKeyDigests(publicFile.text);
  if (accepts.length === 0) throw new NodeFault(`${publicFile.path}: expected public keys, found none`);
  return { keyFile, publicFile, signs: key && keyDigest(key), accepts };
}

type Attempt = <T>(read: () => Promise<T | undefined>) => Promise<T | undefined>;

async function beforeCopies(
  files: HostFiles,
  places: Places,
  changed: readonly (FileText | undefined)[],
  attempt: Attempt,
): Promise<Map<string, BeforeCopy>> {
  const found = new Map<string, BeforeCopy>();
  if ((await attempt(() => files.stat(places.before))) === undefined) return found;
  for (const file of changed) {
    const copy = file && (await attempt(() => readBefore(files, places, file.real)));
    if (file !== undefined && copy !== undefined) found.set(file.real, copy);
  }
  return found;
}

/** Every pair that this agent writes. */
function pairsOf(
  places: Places,
  signers: NodeSight['signers'],
  signing: SignerFiles | undefined,
  leaves: NodeSight['leaves'],
): PairFiles[] {
  return [
    ...KUBEADM_SIGNERS.map(({ name }) => pairFiles(signerPlace(places, name), signers.get(name))),
    pairFiles(places.signing, signing),
    ...[...leaves.values()].flatMap(leaf => (leaf.place === undefined ? [] : [pairFiles(leaf.place, leaf)])),
  ];
}

function pairFiles(
  place: PairPlace,
  there: { readonly file: FileText; readonly keyFile: FileText | undefined } | undefined,
): PairFiles {
  return { place, there: { certificate: there?.file, key: there?.keyFile } };
}

async function ownFolder(files: HostFiles, { own, before }: Places): Promise<NodeSight['own']> {
  const stat = await files.stat(own);
  const isEmpty = stat?.kind === 'directory' && (await files.list(own))?.length === 0;
  return { isEmpty, hasBefore: stat?.kind === 'directory' && (await files.stat(before)) !== undefined };
}

function keysIn(pairs: readonly SignerFiles[], before: NodeSight['before']): Map<string, CertificateAndKey> {
  const keys = new Map<string, CertificateAndKey>();
  const add = (ca: Certificate | undefined, key: KeyObject | undefined) => {
    if (ca !== undefined && key !== undefined && belongsTo(key, ca)) keys.set(caDigest(ca), { chain: [ca], key });
  };
  for (const { cas, key, file, keyFile } of pairs) {
    for (const ca of cas) add(ca, key);
    const oldCertificate = before.get(file.real);
    const oldKey = keyFile && before.get(keyFile.real);
    if (oldCertificate === undefined || oldKey === undefined) continue;
    for (const ca of certificatesOf(file, oldCertificate.copy.text)) add(ca, keyOf(oldKey.copy.text));
  }
  return keys;
}

function tokenKeysIn(
  serviceAccount: ServiceAccountFiles | undefined,
  before: NodeSight['before'],
): Map<string, string> {
  const keyFile = serviceAccount?.keyFile;
  const texts = [keyFile?.text, keyFile && before.get(keyFile.real)?.copy.text].filter(text => text !== undefined);
  return new Map(
    texts.flatMap(text => {
      const key = keyOf(text);
      return key === undefined ? [] : [[keyDigest(key), text] as const];
    }),
  );
}
