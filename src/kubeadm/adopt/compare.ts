import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type KubeadmSigner, type SignerName } from '../chains.ts';
import { CONTROL_PLANE_LABEL } from '../names.ts';
import type { NodeReport } from '../report.ts';

/** A node, and what its agent says. */
export interface ReportedNode {
  readonly name: string;
  readonly report: NodeReport | undefined;
  /** By the label of the Node. */
  readonly isControlPlane: boolean;
}

type Seen = ReportedNode & { readonly report: NodeReport };

const KUBELET = KUBEADM_CHAINS.find(({ renewedBy }) => renewedBy === 'kubelet')?.name;
/** So many nodes are named in one sentence. */
const MOST_NAMES = 5;

/**
 * What keeps a cluster from being adopted (spec 80, KA-1): one sentence a difference, with the nodes and what to do; empty: nothing does. It is
 * for a cluster that no hand-over of ours has touched: one CA a file. Of workers only what they report is compared. What follows from
 * something else that is said is not said as well.
 */
export function compareNodes(nodes: readonly ReportedNode[], now: Date): readonly string[] {
  const all = nodes.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const controlPlane = all.filter(({ isControlPlane }) => isControlPlane);
  if (controlPlane.length === 0)
    return [`No node has the label ${CONTROL_PLANE_LABEL}: set it on the nodes that run kube-apiserver.`];
  const reported = [...controlPlane, ...all.filter(({ isControlPlane }) => !isControlPlane)].filter(isSeen);
  // What of their files could not be read looks as if it were missing.
  const troubled = reported.filter(({ report }) => report.problem !== undefined);
  const seen = reported.filter(node => !troubled.includes(node));
  // What has the files of something else is compared with nobody: everything about it would differ.
  const servers = seen.filter(({ isControlPlane, report }) => isControlPlane && report.role === 'control-plane');
  const workers = seen.filter(({ isControlPlane }) => !isControlPlane);
  const bySigner = KUBEADM_SIGNERS.map(
    signer => [signer.name, [...signerDifferences(signer, servers), ...expired(signer, servers, now)]] as const,
  );
  const onWorkers = workerDifferences(servers, workers);
  const doubtful = new Set(bySigner.filter(([, found]) => found.length > 0).map(([name]) => name));
  if (onWorkers.length > 0) doubtful.add('ca');
  return [
    ...silent(controlPlane),
    ...troubled.map(
      ({ name, report: { problem = '' } }) =>
        `${name} has a problem: ${sentence(problem)} Mend that; the rest of this node is compared then.`,
    ),
    ...misplaced(seen),
    ...bySigner.flatMap(([, found]) => found),
    ...onWorkers,
    ...signingDifferences(servers),
    ...serviceAccountDifferences(servers),
    ...etcdDifferences(servers),
    ...[...servers, ...workers].flatMap(node => leafDifferences(node, doubtful)),
    ...(doubtful.has('ca') ? [] : [...servers, ...workers].flatMap(kubeconfigDifferences)),
  ];
}

/** What is left to others, which is no difference (spec 80, 9): one sentence each, in general terms of the cluster. */
export function onlyWatched(nodes: readonly ReportedNode[]): readonly string[] {
  const servers = nodes.filter(isSeen).filter(({ report }) => report.role === 'control-plane');
  const isExternal = servers.length > 0 && servers.every(({ report }) => report.etcd === 'external');
  const cas = KUBEADM_SIGNERS.filter(({ name }) => {
    const sights = servers.flatMap(({ report }) => report.signers[name] ?? []);
    return !(isExternal && name === 'etcd-ca') && sights.length > 0 && sights.every(({ key }) => key === 'none');
  });
  const keys = servers.flatMap(({ report }) => report.serviceAccount ?? []);
  return [
    ...(isExternal ? ['etcd is external: its certificates are only watched.'] : []),
    ...cas.map(
      ({ name, base }) =>
        `${name} is an external CA (no node has ${base}.key): what it signs is only watched, and renewed by its owner.`,
    ),
    ...(keys.length > 0 && keys.every(({ signs }) => signs === undefined)
      ? ['No node has sa.key: the keys of service accounts are only watched.']
      : []),
  ];
}

function isSeen(node: ReportedNode): node is Seen {
  return node.report !== undefined;
}

function silent(controlPlane: readonly ReportedNode[]): string[] {
  const names = controlPlane.filter(node => !isSeen(node)).map(nameOf);
  if (names.length === 0) return [];
  return [
    `${namesText(names)} ${names.length === 1 ? 'does' : 'do'} not report: see whether the agent's pod in namespace rotunda runs there.`,
  ];
}

function misplaced(nodes: readonly Seen[]): string[] {
  const wrong = nodes.filter(({ report, isControlPlane }) => (report.role === 'control-plane') !== isControlPlane);
  return wrong.map(({ name, isControlPlane }) =>
    isControlPlane
      ? `${name} has the label ${CONTROL_PLANE_LABEL} but none of the files of a control plane: remove the label, or join it with --control-plane.`
      : `${name} has the files of a control plane but not the label ${CONTROL_PLANE_LABEL}: set the label, or run kubeadm reset there and join it anew.`,
  );
}

function signerDifferences({ name, base }: KubeadmSigner, servers: readonly Seen[]): string[] {
  // With an external etcd there is one of its CA's certificates at most, and it is no business of ours.
  const owners = name === 'etcd-ca' ? servers.filter(({ report }) => report.etcd === 'stacked') : servers;
  const has = (node: Seen) => (node.report.signers[name]?.cas.length ?? 0) > 0;
  const holders = owners.filter(has);
  const key = (of: Seen) => of.report.signers[name]?.key;
  const withKey = holders.filter(node => key(node) !== 'none');
  return [
    ...perNodes(
      owners.filter(node => !has(node)),
      names => `${names} no CA in ${base}.crt: copy ${base}.crt and ${base}.key from another node.`,
    ),
    ...perNodes(
      holders.filter(({ report }) => (report.signers[name]?.cas.length ?? 0) > 1),
      names =>
        `${names} more than one CA in ${base}.crt: end the replacement that somebody has begun, or take out those that only stand above the first, so that one is left.`,
    ),
    ...differing(
      `${base}.crt`,
      holders,
      ({ report }) => report.signers[name]?.cas[0] as string,
      `copy ${base}.crt and ${base}.key from the node that is right, or join the others anew`,
    ),
    ...perNodes(
      holders.filter(node => key(node) === 'wrong'),
      names => `${names} a key in ${base}.key that is not that of ${base}.crt: copy both from another node.`,
    ),
    // Nowhere: an external CA.
    ...perNodes(withKey.length === 0 ? [] : holders.filter(node => key(node) === 'none'), names => {
      const others = namesText(withKey.map(nameOf));
      return `${names} no ${base}.key, which ${others} ${withKey.length === 1 ? 'has' : 'have'}: copy it, so that every node can sign.`;
    }),
  ];
}

/** Nobody accepts what it has signed any more, and it cannot sign its successor in. */
function expired({ name, base }: KubeadmSigner, servers: readonly Seen[], now: Date): string[] {
  const ends = (of: Seen) => of.report.signers[name]?.ends;
  const isOver = (of: Seen) => Date.parse(ends(of) ?? '') <= now.getTime();
  return perNodes(
    servers.filter(isOver),
    names =>
      `${names} a CA in ${base}.crt that ended at ${ends(servers.find(isOver) as Seen)}: make another one as on the first day (kubeadm init phase certs, with ${base}.crt and ${base}.key moved away), and all that it signs.`,
  );
}

/** In a hand-over they get what `ca.crt` gets: what else is in them would be lost, or would be trusted for ever. */
function kubeconfigDifferences({ name, report: { kubeconfigs = {}, signers } }: Seen): string[] {
  const own = signers.ca?.cas.join();
  const others = Object.entries(kubeconfigs).filter(([, cas]) => cas.join() !== own);
  return others.map(
    ([file]) =>
      `${file} on ${name} does not trust the CA of ca.crt, or others as well: put that one into its certificate-authority-data, and restart what reads it.`,
  );
}

function workerDifferences(servers: readonly Seen[], workers: readonly Seen[]): string[] {
  const right = new Set(servers.flatMap(({ report }) => report.signers.ca?.cas[0] ?? []));
  const [ca] = right;
  // Where control-plane nodes do not agree nobody knows what a worker ought to have.
  if (ca === undefined || right.size > 1) return [];
  return perNodes(
    workers.filter(({ report }) => report.role === 'worker' && report.signers.ca?.cas[0] !== ca),
    names => `${names} another ca.crt than the control plane: copy it from there, or join anew.`,
  );
}

function signingDifferences(servers: readonly Seen[]): string[] {
  return perNodes(
    servers.filter(({ report: { signing, signers } }) => signing !== undefined && signing.ca !== signers.ca?.cas[0]),
    names =>
      `${names} a kube-controller-manager that signs with another CA than that of ca.crt: let --cluster-signing-cert-file name ca.crt.`,
  );
}

function serviceAccountDifferences(servers: readonly Seen[]): string[] {
  const signing = (node: Seen) => node.report.serviceAccount?.signs;
  const signers = servers.filter(node => signing(node) !== undefined);
  const verifiers = servers.filter(({ report }) => (report.serviceAccount?.accepts.length ?? 0) > 0);
  const advice = 'copy sa.key and sa.pub from the node that is right, and restart kube-apiserver';
  return [
    ...perNodes(
      servers.filter(({ report }) => (report.serviceAccount?.accepts.length ?? 0) === 0),
      names => `${names} no key in sa.pub: copy sa.pub and sa.key from another node.`,
    ),
    ...perNodes(signers.length === 0 ? [] : servers.filter(node => signing(node) === undefined), names => {
      const others = namesText(signers.map(nameOf));
      return `${names} no sa.key, which ${others} ${signers.length === 1 ? 'has' : 'have'}: copy it.`;
    }),
    ...differing('sa.key', signers, node => signing(node) as string, advice),
    ...differing(
      'sa.pub',
      verifiers,
      ({ report }) => report.serviceAccount?.accepts.toSorted().join(' ') as string,
      advice,
    ),
    ...perNodes(
      servers.filter(({ report: { serviceAccount: keys } }) => {
        return keys?.signs !== undefined && keys.accepts.length > 0 && !keys.accepts.includes(keys.signs);
      }),
      names => `${names} an sa.key that sa.pub does not have: tokens from there are refused, copy both.`,
    ),
  ];
}

function etcdDifferences(servers: readonly Seen[]): string[] {
  const without = servers.filter(({ report }) => report.etcd === 'external');
  if (without.length === 0 || without.length === servers.length) return [];
  const members = servers.filter(node => !without.includes(node)).map(nameOf);
  return perNodes(
    without,
    names =>
      `${names} no member of etcd, which ${namesText(members)} ${members.length === 1 ? 'has' : 'have'}: join it anew with --control-plane.`,
  );
}

function leafDifferences({ name, report }: Seen, doubtful: ReadonlySet<SignerName>): string[] {
  const expected = KUBEADM_CHAINS.filter(
    ({ signer, isOptional = false, renewedBy }) =>
      renewedBy === 'kubelet' ||
      (report.role === 'control-plane' && !isOptional && (signer !== 'etcd-ca' || report.etcd === 'stacked')),
  );
  const missing = expected.filter(chain => !Object.hasOwn(report.leaves, chain.name));
  const wrong = Object.entries(report.leaves).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    ...missing.map(({ name: leaf, target, renewedBy }) => {
      if (renewedBy === 'kubelet') return `${name} has no client certificate of its kubelet: join it anew.`;
      const phase = target.kind === 'pair' ? `certs ${leaf}` : `kubeconfig ${leaf.replace(/\.conf$/, '')}`;
      return `${name} has no ${leaf}: make it there with kubeadm init phase ${phase}.`;
    }),
    ...wrong.flatMap(([leaf, { problem }]) => {
      const signer = KUBEADM_CHAINS.find(chain => chain.name === leaf)?.signer;
      // Whether it was signed by the right one is not known yet.
      if (problem === undefined || (signer !== undefined && doubtful.has(signer))) return [];
      const advice = leaf === KUBELET ? 'Join the node anew.' : `Make it anew with kubeadm certs renew ${leaf}.`;
      return [`${leaf} on ${name} is wrong: ${sentence(problem)} ${advice}`];
    }),
  ];
}

/** One sentence that says which nodes have which, when they do not all have the same. */
function differing(what: string, nodes: readonly Seen[], of: (node: Seen) => string, advice: string): string[] {
  const groups = new Map<string, string[]>();
  for (const node of nodes) groups.set(of(node), [...(groups.get(of(node)) ?? []), node.name]);
  if (groups.size < 2) return [];
  const parts = [...groups.values()].map(names => (names.length === 1 ? names[0] : `[${namesText(names)}]`));
  return [`${what} is not the same on ${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}: ${advice}.`];
}

/** One sentence about all that have the same: `say` goes on after "has" or "have". */
function perNodes(nodes: readonly Seen[], say: (names: string) => string): string[] {
  if (nodes.length === 0) return [];
  return [say(`${namesText(nodes.map(nameOf))} ${nodes.length === 1 ? 'has' : 'have'}`)];
}

function nameOf({ name }: ReportedNode): string {
  return name;
}

function namesText(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES);
  const last = names.length > MOST_NAMES ? `${names.length - MOST_NAMES} more` : (shown.pop() as string);
  return shown.length === 0 ? last : `${shown.join(', ')} and ${last}`;
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
