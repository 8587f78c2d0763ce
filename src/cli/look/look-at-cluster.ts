import { certificatesOfKubeconfig } from '../../inventory/kubeconfig.ts';
import { readPem } from '../../inventory/relations.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type KubeadmChain } from '../../kubeadm/chains.ts';
import { readClusterConfiguration } from '../../kubeadm/cluster-configuration.ts';
import { CERTIFICATES_DIRECTORY, KUBELET_DIRECTORY, KUBERNETES_DIRECTORY } from '../../kubeadm/names.ts';
import { CONTROL_PLANE_NODE_LABEL } from '../../machine-config-api/names.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { chainsServed, placeOf } from '../certificates/served.ts';
import type { Cluster } from '../cluster.ts';
import { SeenAuthorities } from './authorities.ts';
import { type ClusterObjects, readClusterObjects } from './cluster-objects.ts';
import { AT_END_OF_CA, type Sighting, seenItem } from './item.ts';
import type { Look } from './look.ts';
import { readReports, replacedAt } from './reports.ts';
import { type AskedServer, serversOf } from './servers.ts';
import { isSelfIssued, isSignedByAny } from './signed-by.ts';

/** With a kubeconfig alone: what a cluster that kubeadm made shows over its API and over TLS (spec 80, 10). */
export async function lookAtCluster(cluster: Cluster, now: Date): Promise<Look> {
  const objects = await readClusterObjects(cluster);
  const authorities = authoritiesOf(cluster, objects);
  const answers = await chainsServed(serversOf(cluster, objects));
  const reports = readReports(
    objects,
    now,
    authorities.list().map(({ certificate }) => certificate),
  );
  const reported = new Set(reports.items.map(({ certificate }) => certificate?.sha256));
  const sightings = [
    ...ownSightings(cluster, authorities, reports.isAdopted),
    ...servedSightings(answers, authorities),
    ...authoritySightings(authorities, reports.keptSigners),
    ...bundleSightings(objects),
  ];
  const items = sightings.map(sighting => seenItem(sighting, now));
  return {
    layout: 'kubeadm',
    // What an agent reports and its server shows is one certificate.
    items: [...reports.items, ...items.filter(({ certificate }) => !reported.has(certificate?.sha256))],
    unseen: [...silentTexts(answers), ...objects.unseen, ...filesTexts(objects, reports.nodes)],
  };
}

/**
 * What the kubeconfig and the TLS of its server alone say: for when the API cannot be used, which may be because one of these has ended.
 */
export async function lookAtServer(cluster: Pick<Cluster, 'server' | 'shown'>, now: Date): Promise<Look> {
  const authorities = new SeenAuthorities();
  authorities.add('ca', 'kubeconfig', readPem(cluster.shown.ca ?? '').certificates);
  const answers = await chainsServed(serversOf(cluster));
  const sightings = [
    ...ownSightings(cluster, authorities),
    ...servedSightings(answers, authorities),
    ...authoritySightings(authorities),
  ];
  return { layout: undefined, items: sightings.map(sighting => seenItem(sighting, now)), unseen: silentTexts(answers) };
}

/** The CAs that the API publishes, by what they are for. */
function authoritiesOf({ shown }: Cluster, objects: ClusterObjects): SeenAuthorities {
  const authorities = new SeenAuthorities();
  authorities.add('ca', 'kubeconfig', readPem(shown.ca ?? '').certificates);
  for (const { pem } of kubeconfigIn(objects)?.authorities ?? []) {
    authorities.add('ca', 'configmap/cluster-info in kube-public', readPem(pem).certificates);
  }
  const rootCas = objects.rootCas.map(({ data }) => data?.['ca.crt'] ?? '');
  for (const text of new Set(rootCas)) {
    const count = rootCas.filter(other => other === text).length;
    const where = count === 1 ? '1 namespace' : `${count} namespaces`;
    authorities.add('ca', `configmap/kube-root-ca.crt in ${where}`, readPem(text).certificates);
  }
  const published = (key: string) => readPem(objects.authentication?.data?.[key] ?? '').certificates;
  const place = 'configmap/extension-apiserver-authentication in kube-system';
  authorities.add('ca', `${place} (client-ca-file)`, published('client-ca-file'));
  authorities.add(
    'front-proxy-ca',
    `${place} (requestheader-client-ca-file)`,
    published('requestheader-client-ca-file'),
  );
  return authorities;
}

function kubeconfigIn({ clusterInfo }: ClusterObjects) {
  return certificatesOfKubeconfig(clusterInfo?.data?.kubeconfig ?? '');
}

function authoritySightings(authorities: SeenAuthorities, kept: ReadonlySet<string> = new Set()): Sighting[] {
  return authorities.list().map(({ name, certificate, places }) => ({
    name,
    places,
    role: 'signer',
    ...knownSigner(name),
    certificates: [certificate],
    mismatch: certificate.isCA ? undefined : 'it is no CA',
    ...(kept.has(name) ? { renewal: 'rotunda', renewsAt: replacedAt(certificate) } : { renewal: 'nobody' }),
    atItsEnd: AT_END_OF_CA,
  }));
}

/** The certificate that the kubeconfig itself shows. */
function ownSightings({ shown }: Pick<Cluster, 'shown'>, authorities: SeenAuthorities, isAdopted = false): Sighting[] {
  if (shown.certificate === undefined) return [];
  const { certificates, problem } = readPem(shown.certificate);
  const [own] = certificates;
  const chain = KUBEADM_CHAINS.find(
    ({ creator }) => creator.kind === 'client' && creator.user.name === own?.subject.commonName,
  );
  const isKubelets = own?.subject.commonName.startsWith('system:node:') ?? false;
  return [
    {
      name: `kubeconfig (${own?.subject.commonName ?? 'its user'})`,
      places: ['kubeconfig'],
      role: 'target',
      knownAs: chain?.name,
      purpose: 'This kubeconfig shows it to kube-apiserver.',
      certificates,
      problem,
      authority: authorityOf(own, authorities),
      renewal: isKubelets ? 'kubelet' : chain === undefined ? 'owner' : 'by-hand',
      ...(chain === undefined || isKubelets
        ? {}
        : {
            renewWith: isAdopted
              ? `a new copy of ${chain.name}, which rotunda renews on its node`
              : `kubeadm certs renew ${chain.name}, and a new copy`,
          }),
      atItsEnd: 'whoever uses this kubeconfig is refused by kube-apiserver',
    },
  ];
}

interface Answer {
  readonly server: AskedServer;
  readonly chain: readonly Certificate[];
}

/** What servers show; one certificate that several addresses show is one item. */
function servedSightings(answers: readonly Answer[], authorities: SeenAuthorities): Sighting[] {
  const shown = answers.filter(({ chain }) => chain.length > 0);
  const groups = Map.groupBy(shown, ({ chain }) => chain[0]?.der.toString('base64') ?? '');
  return [...groups.values()].map(group => {
    const [first] = group as [Answer, ...Answer[]];
    const { server, chain } = first;
    const node = group.map(answer => answer.server.node).find(Boolean);
    const places = group.map(answer => placeOf(answer.server));
    const name = `${server.shows}@${node ?? addressOf(server)}`;
    const known = KUBEADM_CHAINS.find(candidate => candidate.name === server.shows);
    return known === undefined
      ? kubeletSighting(name, places, chain, authorities)
      : controlPlaneSighting(name, places, chain, authorities, known);
  });
}

function addressOf({ host, port }: AskedServer): string {
  return placeOf({ host, port });
}

function controlPlaneSighting(
  name: string,
  places: readonly string[],
  chain: readonly Certificate[],
  authorities: SeenAuthorities,
  { purpose, signer, name: leaf, atItsEnd }: KubeadmChain,
): Sighting {
  const [certificate] = chain;
  const trusted = authorities.named(signer);
  const isTheirs = certificate !== undefined && isSignedByAny(certificate, trusted);
  // A load balancer or somebody's own certificate in front of it is not kubeadm's to renew.
  const isKubeadms = isTheirs || (trusted.length === 0 && certificate?.issuer.commonName === signerName(signer));
  return {
    name,
    places,
    role: 'target',
    knownAs: leaf,
    purpose,
    certificates: chain,
    authority: isKubeadms ? signer : authorityOf(certificate, authorities),
    ...(isKubeadms
      ? { renewal: 'by-hand', renewWith: `kubeadm certs renew ${leaf}, on its node` }
      : { renewal: 'owner', notes: [`it is not signed by ${signer}: whoever brought it renews it`] }),
    atItsEnd,
  };
}

function kubeletSighting(
  name: string,
  places: readonly string[],
  chain: readonly Certificate[],
  authorities: SeenAuthorities,
): Sighting {
  const [certificate] = chain;
  const isRequested = certificate !== undefined && isSignedByAny(certificate, authorities.named('ca'));
  return {
    name,
    places,
    role: 'unmanaged',
    purpose: 'The kubelet shows it to kube-apiserver, and to whoever reads its metrics.',
    certificates: chain,
    authority: isRequested ? 'ca' : authorityOf(certificate, authorities),
    renewal: isRequested ? 'kubelet' : 'nobody',
    atItsEnd: isRequested
      ? 'whoever verifies it refuses this kubelet'
      : 'nothing as a rule: it is self-signed, and kube-apiserver does not verify it',
  };
}

/** Webhooks and aggregated API servers: only watched (spec 80, 9). */
function bundleSightings({ bundles }: ClusterObjects): Sighting[] {
  const byText = Map.groupBy(bundles, ({ pem }) => pem);
  return [...byText].map(([pem, holders]) => {
    const places = [...new Set(holders.map(({ place }) => place))];
    const { certificates, problem } = readPem(pem);
    // Several generations: it is as good as the one that ends last.
    const sorted = certificates.toSorted((a, b) => b.notAfter.getTime() - a.notAfter.getTime());
    return {
      name: places[0] ?? '',
      places,
      role: 'unmanaged',
      purpose: 'kube-apiserver verifies the servers behind it with this caBundle.',
      certificates: sorted,
      problem,
      renewal: 'owner',
      atItsEnd: 'kube-apiserver refuses the servers behind it',
    };
  });
}

/** What a CA is called here; else its own name. */
function authorityOf(certificate: Certificate | undefined, authorities: SeenAuthorities): string | undefined {
  if (certificate === undefined || isSelfIssued(certificate)) return undefined;
  const found = authorities.list().find(authority => isSignedByAny(certificate, [authority.certificate]));
  return found?.name ?? certificate.issuer.commonName;
}

function knownSigner(name: string): Pick<Sighting, 'knownAs' | 'purpose'> {
  const signer = KUBEADM_SIGNERS.find(candidate => name === candidate.name || name.startsWith(`${candidate.name} (`));
  return { knownAs: signer?.name, purpose: signer?.purpose };
}

function signerName(name: string): string | undefined {
  return KUBEADM_SIGNERS.find(signer => signer.name === name)?.commonName;
}

const MOST_NAMED = 3;

function silentTexts(answers: readonly Answer[]): string[] {
  const silent = answers.filter(({ chain }) => chain.length === 0).map(({ server }) => server);
  return [...Map.groupBy(silent, ({ shows }) => shows)].map(([shows, servers]) => {
    const named = servers.slice(0, MOST_NAMED).map(placeOf).join(', ');
    const more = servers.length > MOST_NAMED ? ` and ${servers.length - MOST_NAMED} more` : '';
    return `what ${shows} shows at ${named}${more}: no answer from here`;
  });
}

/** What is in files only, with the command that would show it. */
function filesTexts({ configuration, nodes: all }: ClusterObjects, reporting: ReadonlySet<string>): string[] {
  // Agents tell of the files of their nodes.
  const nodes = all.filter(({ metadata }) => !reporting.has(metadata?.name ?? ''));
  const { certificatesDirectory = CERTIFICATES_DIRECTORY, etcd = 'stacked' } =
    readClusterConfiguration(configuration?.data?.ClusterConfiguration) ?? {};
  const controlPlane = nodes.filter(({ metadata }) => CONTROL_PLANE_NODE_LABEL in (metadata?.labels ?? {}));
  const names = controlPlane.map(({ metadata }) => metadata?.name ?? '').slice(0, MOST_NAMED);
  const where = names.length === 0 ? 'each control-plane node' : names.join(', ');
  const isInside = certificatesDirectory.startsWith(`${KUBERNETES_DIRECTORY}/`);
  const commands = [KUBERNETES_DIRECTORY, ...(isInside ? [] : [certificatesDirectory])].map(
    folder => `rotunda get certs --from ${folder}`,
  );
  const isAllReported = all.length > 0 && nodes.length === 0;
  const isServerUnseen = controlPlane.length > 0 || reporting.size === 0;
  const external = etcd === 'external' ? ["external etcd's certificates: on its own machines"] : [];
  if (isAllReported) return external;
  const files = isServerUnseen
    ? [
        `files on control-plane nodes (client certificates, kubeconfigs, whether a CA has its key): on ${where}, ${commands.join(' and ')}`,
      ]
    : [];
  return [
    ...files,
    ...external,
    `client certificates of kubelets: on each node${reporting.size > 0 ? ' that does not report' : ''}, rotunda get certs --from ${KUBELET_DIRECTORY}`,
  ];
}
