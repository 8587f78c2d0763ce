import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { BundleConfig, SignerConfig, TargetConfig } from '../certrotation/config.ts';
import { clientCreator, peerCreator } from '../certrotation/creator.ts';
import { followSigner } from '../certrotation/signer-change.ts';
import type { KeyAlgorithm } from '../pki/keys.ts';
import { COMMON_HOSTNAMES, FAMILY_TABLE, NODE_LEAVES, type NodeLeafRow } from './cert-table.ts';
import type { Lifetimes } from './lifetimes.ts';
import { ETCD_NAMESPACE } from './names.ts';
import { internalAddresses } from './node-address.ts';
import type { Family } from './profile.ts';

export interface CertificateOptions {
  readonly lifetimes: Lifetimes;
  /** RSA 2048 unless told otherwise. */
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
}

const JIRA_COMPONENT = 'etcd';

/** The signer we keep fresh; the one in use follows it. */
export function wantedSigner(family: Family, { lifetimes, keyAlgorithm }: CertificateOptions): SignerConfig {
  const { signer: name, signerDescription: description } = FAMILY_TABLE[family];
  return {
    namespace: ETCD_NAMESPACE,
    name,
    ...lifetimes.signer,
    keyAlgorithm,
    additionalAnnotations: { jiraComponent: JIRA_COMPONENT, description },
  };
}

export function bundleConfig(family: Family): BundleConfig {
  const { bundle: name, bundleDescription: description } = FAMILY_TABLE[family];
  return { namespace: ETCD_NAMESPACE, name, additionalAnnotations: { jiraComponent: JIRA_COMPONENT, description } };
}

/** A client certificate: alone in its file, good for clients only (spec 40, C-6). */
export function clientLeaf(family: Family, { lifetimes, keyAlgorithm }: CertificateOptions): TargetConfig {
  const { secret: name, user, description } = FAMILY_TABLE[family].client;
  return {
    namespace: ETCD_NAMESPACE,
    name,
    ...lifetimes.leaf,
    keyAlgorithm,
    additionalAnnotations: { jiraComponent: JIRA_COMPONENT, description },
    creator: followSigner(clientCreator(user)),
  };
}

/** One certificate of one node: good for both ends of a connection, followed by its signer (spec 40, C-8). */
export interface NodeLeaf {
  readonly node: string;
  readonly row: NodeLeafRow;
  readonly target: TargetConfig;
}

/** The certificates of all nodes, node by node. Throws when a node has no address (spec 40, S-11). */
export function nodeLeaves(nodes: readonly Node[], options: CertificateOptions): NodeLeaf[] {
  return nodes.flatMap(node => NODE_LEAVES.map(row => nodeLeaf(node, row, options)));
}

function nodeLeaf(node: Node, row: NodeLeafRow, { lifetimes, keyAlgorithm }: CertificateOptions): NodeLeaf {
  const name = node.metadata?.name ?? '';
  const hostnames = hostnamesOfNode(node, row);
  const target: TargetConfig = {
    namespace: ETCD_NAMESPACE,
    name: `${row.prefix}${name}`,
    ...lifetimes.leaf,
    keyAlgorithm,
    additionalAnnotations: { jiraComponent: JIRA_COMPONENT, description: `${row.description} ${name}` },
    creator: followSigner(peerCreator({ hostnames })),
  };
  return { node: name, row, target };
}

/** The names and addresses a certificate of this node must be good for (spec 40, C-7). */
export function hostnamesOfNode(node: Node, row: NodeLeafRow): string[] {
  try {
    return [...COMMON_HOSTNAMES, ...internalAddresses(node)];
  } catch (error) {
    const where = `error creating ${row.errors.config} cert for node [${node.metadata?.name ?? ''}]`;
    const why = `could not retrieve internal IP addresses for node: ${(error as Error).message}`;
    throw new Error(`error while creating cert configs for nodes: ${where}: ${why}`, { cause: error });
  }
}
