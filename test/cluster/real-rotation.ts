import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER, NOT_BEFORE } from '../../src/certrotation/annotations.ts';
import { BUNDLE_KEY } from '../../src/certrotation/bundle.ts';
import { loadSecret, TLS_CERT } from '../../src/certrotation/secret.ts';
import { FAMILY_TABLE, NODE_LEAVES } from '../../src/etcd/cert-table.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE } from '../../src/etcd/names.ts';
import { FAMILIES } from '../../src/etcd/profile.ts';
import { Informer } from '../../src/kube/informer.ts';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import { type Chain, KUBE_APISERVER_CHAINS, type ObjectName, signersOf } from '../../src/kube-apiserver/chains.ts';
import { MANAGED_NAMESPACE } from '../../src/kube-apiserver/namespaces.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import { bundleIn } from '../../src/trust/material.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { CONTROL_PLANE, type RealCluster } from './real-cluster.ts';
import { LOAD_NAMESPACE } from './real-users.ts';

/** A certificate that rotates. */
export interface Artefact extends ObjectName {
  /** At this age it is replaced by itself; undefined: not within any run. */
  readonly refreshMs: number | undefined;
  /** It is also replaced when this signer is handed over. */
  readonly follows?: ObjectName | undefined;
}

interface Version {
  readonly certificate: string;
  readonly notBeforeMs: number;
}

const CERTS = 'etc/kubernetes/static-pod-resources/kube-apiserver-certs';
const KUBECONFIGS = ['localhost', 'localhost-recovery', 'lb-ext', 'lb-int'];
/** kube-apiserver takes a changed file at once or, should it miss that, within a minute; a moment is enough where it does not. */
const RELOAD_MS = 5_000;
/** Certificates begin a second before they are made, and seconds is all they know. */
const TOLERANCE_MS = 3_000;

/** Every leaf and signer of both operators, when a day lasts `dayMs`. */
export function artefactsOf(dayMs: number): { leaves: Artefact[]; signers: Artefact[] } {
  const kubeApiserver = ({ namespace, name, refreshDays }: Chain['signer'], follows?: ObjectName): Artefact => ({
    namespace,
    name,
    refreshMs: refreshDays * dayMs,
    follows,
  });
  const etcd = (name: string, follows?: string): Artefact => ({
    namespace: ETCD_NAMESPACE,
    name,
    refreshMs: undefined,
    follows: follows === undefined ? undefined : { namespace: ETCD_NAMESPACE, name: follows },
  });
  return {
    leaves: [
      ...KUBE_APISERVER_CHAINS.map(({ target, signer }) => kubeApiserver(target, signer)),
      ...FAMILIES.map(family => etcd(FAMILY_TABLE[family].client.secret, FAMILY_TABLE[family].signer)),
      ...NODE_LEAVES.flatMap(({ prefix, family }) =>
        CONTROL_PLANE.map(node => etcd(`${prefix}${node}`, FAMILY_TABLE[family].signer)),
      ),
    ],
    signers: [
      ...signersOf(KUBE_APISERVER_CHAINS).map(({ signer }) => kubeApiserver(signer)),
      ...FAMILIES.map(family => etcd(FAMILY_TABLE[family].signer)),
    ],
  };
}

/** Counts how often certificates are replaced, and knows which of it was asked for. */
export class RotationCount {
  readonly #cluster: RealCluster;
  readonly #secrets: Informer<Secret>;
  readonly #versions = new Map<string, Version[]>();
  readonly #forced = new Map<string, number>();

  constructor(cluster: RealCluster, artefacts: readonly Artefact[]) {
    this.#cluster = cluster;
    for (const artefact of artefacts) this.#versions.set(keyOf(artefact), []);
    this.#secrets = new Informer<Secret>(cluster.kube, SECRETS);
    this.#secrets.subscribe({ add: secret => this.#note(secret), update: (_, secret) => this.#note(secret) });
  }

  async start(): Promise<void> {
    this.#secrets.start();
    await this.#secrets.synced;
  }

  async stop(): Promise<void> {
    await this.#secrets.stop();
  }

  rotations(artefact: ObjectName): number {
    return Math.max(0, (this.#versions.get(keyOf(artefact)) ?? []).length - 1);
  }

  /** Removes what says until when they are good, and waits for their successors. */
  async force(artefacts: readonly Artefact[]): Promise<void> {
    const before = artefacts.map(artefact => this.rotations(artefact));
    for (const artefact of artefacts) {
      this.#forced.set(keyOf(artefact), (this.#forced.get(keyOf(artefact)) ?? 0) + 1);
      const { namespace, name } = artefact;
      const body = { metadata: { annotations: { [NOT_AFTER]: null } } };
      await eventually(`${name} can be changed`, () =>
        this.#cluster.kube.patch(SECRETS, { namespace, name }, { type: 'merge', body }),
      );
    }
    const missing = () => artefacts.filter((artefact, index) => this.rotations(artefact) <= (before[index] as number));
    await eventually(
      'new certificates',
      () => missing().length === 0,
      () => missing().map(keyOf).join(', '),
    );
  }

  /** What an artefact should have done since the beginning and what it did, where the two differ. */
  unpredicted(artefact: Artefact): string | undefined {
    const versions = this.#versions.get(keyOf(artefact)) ?? [];
    let forced = this.#forced.get(keyOf(artefact)) ?? 0;
    let followed = artefact.follows === undefined ? 0 : this.rotations(artefact.follows);
    for (const [index, { notBeforeMs }] of versions.entries()) {
      const previous = versions[index - 1];
      if (previous === undefined) continue;
      const ageMs = notBeforeMs - previous.notBeforeMs;
      const isDue = artefact.refreshMs !== undefined && ageMs >= artefact.refreshMs - TOLERANCE_MS;
      if (isDue) continue;
      if (forced > 0) forced--;
      else if (followed > 0) followed--;
      else return `${keyOf(artefact)} was replaced at the age of ${ageMs} ms, and nobody had asked for it`;
    }
    const due = versions.filter(({ notBeforeMs }, index) => {
      const next = versions[index + 1];
      return (
        next !== undefined &&
        artefact.refreshMs !== undefined &&
        next.notBeforeMs - notBeforeMs >= artefact.refreshMs - TOLERANCE_MS
      );
    }).length;
    return forced > due
      ? `${keyOf(artefact)} was asked for ${forced - due} more times than it was replaced`
      : undefined;
  }

  #note({ metadata, data }: Secret): void {
    const versions = this.#versions.get(`${metadata?.namespace}/${metadata?.name}`);
    const certificate = data?.[TLS_CERT];
    const notBefore = metadata?.annotations?.[NOT_BEFORE];
    if (versions === undefined || !certificate || notBefore === undefined) return;
    if (versions.at(-1)?.certificate === certificate) return;
    versions.push({ certificate, notBeforeMs: Date.parse(notBefore) });
  }
}

/** Waits until whoever verifies with a chain's bundle has its signer, so that a leaf may be forced (`rotation/gap.test.ts`). */
export async function signersHaveSpread(cluster: RealCluster): Promise<void> {
  let missing: string[] = [];
  await eventually(
    'everybody to know the signers',
    async () => {
      missing = [];
      for (const chain of KUBE_APISERVER_CHAINS) {
        const [own] = loadSecret(await cluster.kube.get(SECRETS, chain.signer)).chain;
        for (const [place, text] of await verifiersOf(cluster, chain)) {
          const { certificates } = readCertificates(text);
          if (!certificates.some(({ der }) => own?.der.equals(der))) missing.push(`${chain.signer.name} in ${place}`);
        }
      }
      return missing.length === 0;
    },
    () => missing.join(', '),
  );
  await new Promise(resolve => setTimeout(resolve, RELOAD_MS));
}

/** Whether the wanted signers of etcd are those in use, and every leaf is of them: the end of a hand-over. */
export async function etcdFollows({ kube }: RealCluster): Promise<boolean> {
  for (const family of FAMILIES) {
    const { signer, client } = FAMILY_TABLE[family];
    const [wanted, inUse] = await Promise.all(
      [ETCD_NAMESPACE, CONFIG_NAMESPACE].map(namespace => kube.get(SECRETS, { namespace, name: signer })),
    );
    if (wanted?.data?.[TLS_CERT] !== inUse?.data?.[TLS_CERT]) return false;
    const issuer = loadSecret(inUse as Secret).chain[0]?.subject.commonName;
    const leaves = [
      client.secret,
      ...NODE_LEAVES.filter(row => row.family === family).flatMap(({ prefix }) =>
        CONTROL_PLANE.map(node => `${prefix}${node}`),
      ),
    ];
    for (const name of leaves) {
      const { chain } = loadSecret(await kube.get(SECRETS, { namespace: ETCD_NAMESPACE, name }));
      if (chain[0]?.issuer.commonName !== issuer) return false;
    }
  }
  return true;
}

/** The bundles that the target of a chain is verified with, by where they are. */
async function verifiersOf(cluster: RealCluster, { controller, target }: Chain): Promise<[string, string][]> {
  const onNodes = (path: string) =>
    CONTROL_PLANE.map(node => [`${node}:${path}`, cluster.read(node, path)] as [string, string]);
  const inObject = async (namespace: string, name: string, key: string): Promise<[string, string]> => {
    const { data } = await cluster.kube.get(CONFIG_MAPS, { namespace, name });
    return [`${namespace}/${name}`, data?.[key] ?? ''];
  };
  if (target.creator.kind === 'serving') {
    return [
      ...KUBECONFIGS.flatMap(name => onNodes(`${CERTS}/secrets/node-kubeconfigs/${name}.kubeconfig`)).map(
        ([place, text]) => [place, bundleIn({ kubeconfig: text })] as [string, string],
      ),
      await inObject(MANAGED_NAMESPACE, 'kube-apiserver-server-ca', BUNDLE_KEY),
      await inObject(LOAD_NAMESPACE, 'kube-root-ca.crt', 'ca.crt'),
      ['kubeconfig', readFileSync(join(cluster.dir, 'kube-apiserver-ca.crt'), 'utf8')],
    ];
  }
  if (controller === 'AggregatorProxyClientCert') {
    return onNodes(`${CERTS}/configmaps/aggregator-client-ca/ca-bundle.crt`);
  }
  if (controller === 'KubeAPIServerToKubeletClientCert') return onNodes('etc/kubernetes/kubelet-ca.crt');
  return onNodes(`${CERTS}/configmaps/client-ca/ca-bundle.crt`);
}

function keyOf({ namespace, name }: ObjectName): string {
  return `${namespace}/${name}`;
}
