import type { CertificateItem } from '../../inventory/model.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type SignerName } from '../../kubeadm/chains.ts';
import { KUBERNETES_DIRECTORY } from '../../kubeadm/names.ts';
import { kubeadmTrust } from '../../kubeadm/trust.ts';
import { configMap } from '../../trust/object.ts';
import type { CertificateGraph, GraphEdge, GraphNode } from './model.ts';

/**
 * The graph of a control plane that kubeadm made: its table (spec 80, 1 and 2) says who signs, shows and verifies what, where; what was
 * seen says how many there are and when they end. What could not be seen from here stands in it once, without an end.
 */
export function seenGraph(items: readonly CertificateItem[]): CertificateGraph {
  const nodes = new Map<string, GraphNode>();
  const edges: GraphEdge[] = [];
  const add = (node: GraphNode) => nodes.set(node.id, node);
  const signers = new Map(KUBEADM_SIGNERS.map(({ name }) => [name, instancesOf(name, items, 'signer')] as const));
  for (const found of signers.values()) for (const { node } of found) add(node);
  for (const chain of KUBEADM_CHAINS) {
    const authorities = signers.get(chain.signer) ?? [];
    for (const instance of instancesOf(chain.name, items, 'leaf')) {
      const leaf = instance.node;
      add(leaf);
      edges.push({ from: leaf.id, to: issuerOf(instance, chain.name, authorities).id, kind: 'issued-by' });
      for (const { process, setting } of chain.uses) {
        const id = `process/${process}`;
        add({ id, kind: 'process', label: process });
        edges.push({ from: leaf.id, to: id, kind: 'presented-by', ...(setting !== '' && { label: setting }) });
      }
    }
  }
  for (const { file, signer, process, label } of TRUSTED) {
    const [bundle, id] = [`bundle/${file}`, `process/${process}`];
    if (!nodes.has(bundle)) {
      for (const { node } of signers.get(signer) ?? []) edges.push({ from: node.id, to: bundle, kind: 'contained-in' });
    }
    add({ id: bundle, kind: 'bundle', label: file });
    add({ id, kind: 'process', label: process });
    edges.push({ from: bundle, to: id, kind: 'verified-with', label });
  }
  return { nodes: [...nodes.values()], edges };
}

interface Trusted {
  /** Below `/etc/kubernetes`, or an object. */
  readonly file: string;
  readonly signer: SignerName;
  readonly process: string;
  readonly label: string;
}

/** By the name of its CA, in place of the object that it may be published in. */
const BY_SIGNER = Object.fromEntries(KUBEADM_SIGNERS.map(({ name }) => [name, configMap('', name)])) as Record<
  SignerName,
  ReturnType<typeof configMap>
>;

/** Who verifies with which file. Of an object of its own, such as what nodes join with, the CA is `ca`. */
const TRUSTED: readonly Trusted[] = kubeadmTrust(BY_SIGNER).edges.flatMap(({ name: label, client, server }) =>
  [client, server].flatMap(({ process, verifiesWith }): Trusted[] => {
    if (verifiesWith?.elsewhere === undefined) return [];
    const signer = KUBEADM_SIGNERS.find(({ name }) => name === verifiesWith.object.name)?.name ?? 'ca';
    return [{ file: verifiesWith.elsewhere.file.replace(`${KUBERNETES_DIRECTORY}/`, ''), signer, process, label }];
  }),
);

interface Instance {
  readonly node: GraphNode;
  /** Absent: it cannot be seen from here. */
  readonly certificate?: CertificateItem['certificate'];
}

/** All that were seen of what the layout calls so, on several nodes or of several generations. */
function instancesOf(name: string, items: readonly CertificateItem[], kind: 'signer' | 'leaf'): readonly Instance[] {
  const seen = items.filter(({ seen }) => seen?.knownAs === name && !seen.isMissing);
  if (seen.length === 0) return [{ node: { id: `${kind}/${name}`, kind, label: name } }];
  return seen.map(({ metadata, state, certificate }) => ({
    node: {
      id: `${kind}/${metadata.name}`,
      kind,
      label: metadata.name,
      state,
      ...(certificate !== undefined && { expires: certificate.notAfter }),
    },
    certificate,
  }));
}

/** Of several generations the one that it names; in a folder of several nodes the CA beside it has the same prefix. */
function issuerOf({ node, certificate }: Instance, chain: string, authorities: readonly Instance[]): GraphNode {
  const prefix = node.label.endsWith(chain) ? node.label.slice(0, -chain.length) : '';
  const beside = authorities.filter(authority => authority.node.label.startsWith(prefix));
  const near = beside.length > 0 ? beside : authorities;
  const named = near.find(authority => authority.certificate?.subject === certificate?.issuer);
  return (named ?? near[0] ?? authorities[0])?.node as GraphNode;
}
