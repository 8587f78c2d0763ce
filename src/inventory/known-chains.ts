import { FAMILY_TABLE, NODE_LEAVES } from '../etcd/cert-table.ts';
import { ETCD_NAMESPACE, CONFIG_NAMESPACE as ETCD_SIGNERS_IN_USE } from '../etcd/names.ts';
import { previousKey } from '../hand-over/family.ts';
import { type ChainCreator, KUBE_APISERVER_CHAINS, type ObjectName } from '../kube-apiserver/chains.ts';

/** One signer, bundle and target that an operator of ours keeps, whichever it is. */
export interface KnownChain {
  readonly operator: 'kube-apiserver' | 'etcd';
  readonly purpose: string;
  readonly signer: KnownObject;
  /** Made ahead of the signer in use, and put in its place by a hand-over. */
  readonly nextSigner?: KnownObject | undefined;
  readonly bundle: ObjectName;
  readonly target: KnownObject & {
    readonly creator: ChainCreator | { readonly kind: 'peer' };
    /** The Secret of a node is called `<name><node>`. */
    readonly isPrefix?: boolean | undefined;
  };
}

export interface KnownObject extends ObjectName {
  readonly refreshDays: number;
  readonly validityDays: number;
}

/** The lifetimes of spec 40, 1.2, in the layout since 4.17. */
const FIVE_YEARS = { validityDays: 1825, refreshDays: 1533 };

function etcdChains(): KnownChain[] {
  const base = (family: 'server' | 'metrics') => {
    const { signer, bundle } = FAMILY_TABLE[family];
    return {
      operator: 'etcd' as const,
      signer: { namespace: ETCD_SIGNERS_IN_USE, name: signer, ...FIVE_YEARS },
      nextSigner: { namespace: ETCD_NAMESPACE, name: signer, ...FIVE_YEARS },
      bundle: { namespace: ETCD_NAMESPACE, name: bundle },
    };
  };
  const clients = (['server', 'metrics'] as const).map(family => {
    const { secret: name, user, description } = FAMILY_TABLE[family].client;
    const target = { namespace: ETCD_NAMESPACE, name, ...FIVE_YEARS, creator: { kind: 'client' as const, user } };
    return { ...base(family), purpose: `${description}.`, target };
  });
  // Longer prefixes first: `etcd-serving-metrics-` begins with `etcd-serving-`.
  const rows = NODE_LEAVES.toSorted((a, b) => b.prefix.length - a.prefix.length);
  const leaves = rows.map(({ family, prefix, description }) => ({
    ...base(family),
    purpose: `${description}.`,
    target: {
      namespace: ETCD_NAMESPACE,
      name: prefix,
      ...FIVE_YEARS,
      creator: { kind: 'peer' as const },
      isPrefix: true,
    },
  }));
  return [...clients, ...leaves];
}

/** Every chain of our operators. */
export const KNOWN_CHAINS: readonly KnownChain[] = [
  ...KUBE_APISERVER_CHAINS.map(chain => ({ operator: 'kube-apiserver' as const, ...chain })),
  ...etcdChains(),
];

type Place = { readonly metadata?: { readonly namespace?: string | undefined; readonly name?: string } };

export function isNamed({ metadata }: Place, { namespace, name }: ObjectName): boolean {
  return metadata?.namespace === namespace && metadata.name === name;
}

export function chainOfSigner(secret: Place): KnownChain | undefined {
  return KNOWN_CHAINS.find(({ signer }) => isNamed(secret, signer));
}

export function chainOfNextSigner(secret: Place): KnownChain | undefined {
  return KNOWN_CHAINS.find(({ nextSigner }) => nextSigner !== undefined && isNamed(secret, nextSigner));
}

/** The pair of a signer that signed before: kept aside, used by nobody. */
export function chainOfPreviousSigner(secret: Place): KnownChain | undefined {
  return KNOWN_CHAINS.find(({ signer }) => isNamed(secret, previousKey(signer)));
}

export function chainOfBundle(configMap: Place): KnownChain | undefined {
  return KNOWN_CHAINS.find(({ bundle }) => isNamed(configMap, bundle));
}

export function chainOfTarget(secret: Place): KnownChain | undefined {
  const { namespace, name = '' } = secret.metadata ?? {};
  return KNOWN_CHAINS.find(({ target }) =>
    target.isPrefix
      ? namespace === target.namespace && name.startsWith(target.name) && name.length > target.name.length
      : isNamed(secret, target),
  );
}
