import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { ItemMetadata } from '../../inventory/model.ts';
import type { ObjectSource } from '../../inventory/source.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { CLUSTER_RECORD, type ClusterStatus, type FamilyStatus, statusOf } from '../../kubeadm/cluster-record.ts';
import { PKI_NAMESPACE } from '../../kubeadm/names.ts';
import { SERVICE_ACCOUNT } from '../../kubeadm/service-account-keys.ts';
import type { Layout } from '../look/look.ts';
import { shortDuration } from '../output/time.ts';
import type { Kind } from './listings.ts';

/** Where the hand-over of a CA of an adopted cluster stands, or that of the keys of its service accounts, as its operator says. */
export interface AdoptedHandOverItem {
  /** As `rotunda rotate` calls it. */
  readonly metadata: ItemMetadata;
  readonly operator: 'kubeadm';
  readonly phase: string;
  readonly because: string;
  readonly since?: string | undefined;
  readonly waitingFor: readonly string[];
}

export interface AdoptedHandOvers {
  readonly kind: Kind<AdoptedHandOverItem>;
  readonly items: readonly AdoptedHandOverItem[];
  /** Why there are no items. */
  readonly nothing?: string | undefined;
}

const NOBODY =
  'kubeadm made this cluster, and nobody has adopted it, so that nobody hands over its CAs: rotunda get certs says when they end, rotunda adopt kubeadm adopts it';
const SILENT = 'this cluster is adopted, and its operator has not said anything yet: rotunda adopt kubeadm says why';

/** Undefined: kubeadm has not made it, as far as can be told from here. */
export async function adoptedHandOvers(
  source: ObjectSource,
  kind: Kind,
  layout: Layout | undefined,
  now: Date,
): Promise<AdoptedHandOvers | undefined> {
  if (layout === 'openshift') return undefined;
  const { namespace, name } = CLUSTER_RECORD;
  const found = await source.list(CONFIG_MAPS, { namespace, fieldSelector: `metadata.name=${name}` });
  // Files are not selected by fields.
  const record = found.find(({ metadata }) => metadata?.name === name);
  if (record === undefined && layout === undefined) return undefined;
  return { ...handOversOf(record), kind: adoptedKind(kind, statusOf(record), now) };
}

export function handOversOf(record: ConfigMap | undefined): Omit<AdoptedHandOvers, 'kind'> {
  if (record === undefined) return { items: [], nothing: NOBODY };
  const status = statusOf(record);
  if (status === undefined) return { items: [], nothing: SILENT };
  const families = Object.entries(status.families);
  if (families.length === 0) return { items: [], nothing: status.message };
  const account = status.serviceAccount ?? { phase: 'Steady', because: 'nobody has asked for other keys' };
  return { items: [...families, [SERVICE_ACCOUNT, account] as const].map(([name, family]) => itemOf(name, family)) };
}

function itemOf(name: string, { phase, because, since, waitingFor = [] }: FamilyStatus): AdoptedHandOverItem {
  return { metadata: { namespace: PKI_NAMESPACE, name }, operator: 'kubeadm', phase, because, since, waitingFor };
}

function adoptedKind(kind: Kind, status: ClusterStatus | undefined, now: Date): Kind<AdoptedHandOverItem> {
  return {
    ...kind,
    columns: [
      { header: 'NAME', cell: ({ metadata }) => metadata.name },
      { header: 'PHASE', cell: ({ phase }) => phase },
      {
        header: 'SINCE',
        cell: ({ since }) => (since === undefined ? '' : shortDuration(now.getTime() - Date.parse(since))),
      },
      { header: 'WAITING-FOR', cell: waitingText },
      { header: 'BECAUSE', cell: ({ because }) => because },
    ],
    name: ({ metadata }) => `hand-over/${metadata.name}`,
    items: () => [],
    summary: () => ({ first: status?.message ?? '', last: (status?.waitingFor ?? []).map(waitText(now)).join('\n') }),
  };
}

/** All of them stand below the table. */
function waitingText({ waitingFor: [first = '', ...others] }: AdoptedHandOverItem): string {
  return others.length === 0 ? first : `${first} and ${others.length} more`;
}

/** Nodes among them, which hold up more than one hand-over. */
function waitText(now: Date): (waiting: ClusterStatus['waitingFor'][number]) => string {
  return ({ who, why, since }) => `${who} is waited for (${shortDuration(now.getTime() - Date.parse(since))}): ${why}`;
}
