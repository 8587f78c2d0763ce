import type {
  BundleItem,
  CertificateItem,
  HandOverItem,
  Inventory,
  ItemMetadata,
  NextDecision,
  NodeItem,
  PoolItem,
  RevisionItem,
} from '../../inventory/model.ts';
import type { InventoryPart } from '../../inventory/read.ts';
import { handOverSummary, loadedText } from '../hand-overs/words.ts';
import type { Column, Listing } from '../output/print.ts';
import { secondsText, shortDuration } from '../output/time.ts';
import type { AdoptedHandOverItem } from './adopted-hand-overs.ts';

/** What can be listed, with how it is called on the command line. */
export interface Kind<T extends Item = Item> extends Listing<T> {
  readonly words: readonly string[];
  readonly parts: readonly InventoryPart[];
  readonly namespaced: boolean;
  items(inventory: Inventory): readonly T[];
  /** The answer in a sentence, before the table and after it. */
  summary?(items: readonly T[]): { readonly first: string; readonly last: string };
}

export type Item =
  | CertificateItem
  | BundleItem
  | NodeItem
  | RevisionItem
  | PoolItem
  | HandOverItem
  | AdoptedHandOverItem;

/** The kinds of `rotunda get`, as of one moment. */
export function kindsAt(now: Date): readonly Kind[] {
  const left = (time: string | undefined) =>
    time === undefined ? '<unknown>' : shortDuration(new Date(time).getTime() - now.getTime());
  const age = (item: Item) =>
    item.metadata.creationTimestamp === undefined
      ? '<unknown>'
      : shortDuration(now.getTime() - new Date(item.metadata.creationTimestamp).getTime());
  const when = (next: NextDecision | undefined) =>
    next === undefined ? '<none>' : next.action === 'fail' ? '<never>' : next.at === undefined ? 'now' : left(next.at);
  const why = (next: NextDecision | undefined) =>
    next === undefined ? '' : `${next.rule}: ${next.reason.split('\n', 1)[0]}`;

  const certificateColumns: Column<CertificateItem>[] = [
    namespaceColumn(),
    nameColumn(),
    { header: 'ROLE', cell: ({ role }) => role },
    { header: 'STATE', cell: ({ state }) => state },
    { header: 'EXPIRES', cell: ({ certificate }) => left(certificate?.notAfter) },
    { header: 'NEXT', cell: ({ next }) => when(next) },
    { header: 'ISSUER', isWide: true, cell: ({ certificate }) => issuerText(certificate) },
    { header: 'SUBJECT', isWide: true, cell: ({ certificate }) => certificate?.subject ?? '' },
    { header: 'USAGES', isWide: true, cell: ({ certificate }) => (certificate?.usages ?? []).join(',') },
    { header: 'KEY', isWide: true, cell: ({ certificate }) => certificate?.key ?? '' },
    {
      header: 'NOT-AFTER',
      isWide: true,
      cell: ({ certificate }) => (certificate ? secondsText(certificate.notAfter) : ''),
    },
    { header: 'COMPONENT', isWide: true, cell: ({ component = '' }) => component },
    { header: 'WHY', isWide: true, cell: ({ next, problem }) => why(next) || (problem ?? '') },
    { header: 'AGE', cell: age },
  ];
  const certs: Kind<CertificateItem> = {
    kind: 'Certificate',
    words: ['certs', 'cert', 'certificates', 'certificate'],
    parts: ['certificates'],
    namespaced: true,
    columns: certificateColumns,
    name: ({ metadata }) => `secret/${metadata.name}`,
    items: ({ certificates }) => certificates,
  };
  const signers: Kind<CertificateItem> = {
    ...certs,
    kind: 'Signer',
    words: ['signers', 'signer'],
    columns: certificateColumns.filter(({ header }) => header !== 'ROLE' && header !== 'ISSUER'),
    items: ({ certificates }) => certificates.filter(({ role }) => role === 'signer'),
  };
  const bundles: Kind<BundleItem> = {
    kind: 'Bundle',
    words: ['bundles', 'bundle', 'ca-bundles', 'ca-bundle'],
    parts: ['certificates'],
    namespaced: true,
    columns: [
      namespaceColumn(),
      nameColumn(),
      { header: 'ROLE', cell: ({ role }) => role },
      { header: 'STATE', cell: ({ state }) => state },
      { header: 'CAS', cell: ({ certificates }) => String(certificates.length) },
      { header: 'EXPIRES', cell: item => left(latestEnd(item)) },
      { header: 'NEXT', cell: ({ next }) => when(next) },
      { header: 'KEYS', isWide: true, cell: ({ keys }) => keys.join(',') },
      { header: 'SUBJECTS', isWide: true, cell: ({ certificates }) => certificates.map(c => c.subject).join(',') },
      { header: 'WHY', isWide: true, cell: ({ next, problem }) => why(next) || (problem ?? '') },
      { header: 'AGE', cell: age },
    ],
    name: ({ metadata }) => `configmap/${metadata.name}`,
    items: inventory => inventory.bundles,
  };
  const nodes: Kind<NodeItem> = {
    kind: 'Node',
    words: ['nodes', 'node', 'no'],
    parts: ['nodes'],
    namespaced: false,
    columns: [
      nameColumn(),
      {
        header: 'STATUS',
        cell: ({ ready, unschedulable }) =>
          `${ready === undefined ? 'Unknown' : ready ? 'Ready' : 'NotReady'}${unschedulable ? ',SchedulingDisabled' : ''}`,
      },
      { header: 'ROLES', cell: ({ roles }) => roles.join(',') },
      { header: 'KUBE-APISERVER', cell: node => revisionText(node, 'kube-apiserver') },
      { header: 'ETCD', cell: node => revisionText(node, 'etcd') },
      { header: 'CONFIG-STATE', cell: ({ machineConfig }) => machineConfig?.state ?? '' },
      { header: 'CURRENT-CONFIG', isWide: true, cell: ({ machineConfig }) => machineConfig?.current ?? '' },
      { header: 'DESIRED-CONFIG', isWide: true, cell: ({ machineConfig }) => machineConfig?.desired ?? '' },
      { header: 'INTERNAL-IP', isWide: true, cell: ({ addresses }) => addresses.join(',') },
      { header: 'VERSION', isWide: true, cell: ({ version = '' }) => version },
      { header: 'AGE', cell: age },
    ],
    name: ({ metadata }) => `node/${metadata.name}`,
    items: inventory => inventory.nodes,
  };
  const revisions: Kind<RevisionItem> = {
    kind: 'Revision',
    words: ['revisions', 'revision'],
    parts: ['revisions'],
    namespaced: true,
    columns: [
      namespaceColumn(),
      nameColumn(),
      { header: 'OPERAND', cell: ({ operand }) => operand },
      { header: 'REVISION', cell: ({ revision }) => String(revision) },
      { header: 'STATE', cell: ({ state }) => state },
      { header: 'NODES', cell: ({ nodes: on, rollingOutTo }) => [...on, ...rollingOutTo.map(n => `(${n})`)].join(',') },
      { header: 'REASON', isWide: true, cell: ({ reason }) => reason.split('\n', 1)[0] ?? '' },
      { header: 'AGE', cell: age },
    ],
    name: ({ metadata }) => `configmap/${metadata.name}`,
    items: inventory => inventory.revisions,
  };
  const pools: Kind<PoolItem> = {
    kind: 'Pool',
    words: ['pools', 'pool', 'mcp', 'machineconfigpools', 'machineconfigpool'],
    parts: ['pools'],
    namespaced: false,
    columns: [
      nameColumn(),
      { header: 'CONFIG', cell: ({ configuration }) => configuration },
      { header: 'UPDATED', cell: ({ updated }) => yes(updated) },
      { header: 'UPDATING', cell: ({ updating }) => yes(updating) },
      { header: 'DEGRADED', cell: ({ degraded }) => yes(degraded) },
      { header: 'PAUSED', cell: ({ paused }) => yes(paused) },
      { header: 'MACHINES', cell: ({ machineCount }) => String(machineCount) },
      { header: 'READY', cell: ({ readyCount }) => String(readyCount) },
      { header: 'UNAVAILABLE', isWide: true, cell: ({ unavailableCount }) => String(unavailableCount) },
      { header: 'DEGRADED-MACHINES', isWide: true, cell: ({ degradedCount }) => String(degradedCount) },
      { header: 'MESSAGE', isWide: true, cell: ({ message = '' }) => message },
      { header: 'AGE', cell: age },
    ],
    name: ({ metadata }) => `machineconfigpool/${metadata.name}`,
    items: inventory => inventory.pools,
  };
  const handOvers: Kind<HandOverItem> = {
    kind: 'HandOver',
    words: ['hand-overs', 'hand-over', 'handovers', 'handover'],
    parts: ['hand-overs'],
    namespaced: true,
    columns: [
      namespaceColumn(),
      nameColumn(),
      { header: 'PHASE', cell: ({ phase }) => phase },
      {
        header: 'SINCE',
        cell: ({ since }) => (since === undefined ? '' : shortDuration(now.getTime() - Date.parse(since))),
      },
      { header: 'LOADED', cell: loadedText },
      { header: 'WAITING-FOR', cell: ({ waitingFor }) => waitingFor.join(', ') },
      { header: 'OPERATOR', isWide: true, cell: ({ operator }) => operator },
      { header: 'CURRENT', isWide: true, cell: ({ current = '' }) => current },
      { header: 'NEXT', isWide: true, cell: ({ next = '' }) => next },
      { header: 'BECAUSE', isWide: true, cell: ({ because }) => because.split('\n', 1)[0] ?? '' },
      {
        header: 'NOT-COUNTED',
        isWide: true,
        cell: ({ notCounted }) => notCounted.map(({ process }) => process).join(', '),
      },
    ],
    name: ({ metadata }) => `secret/${metadata.name}`,
    items: inventory => inventory.handOvers ?? [],
    summary: handOverSummary,
  };
  return [certs, signers, bundles, nodes, revisions, pools, handOvers];
}

function namespaceColumn<T extends { readonly metadata: ItemMetadata }>(): Column<T> {
  return { header: 'NAMESPACE', cell: ({ metadata }) => metadata.namespace ?? '' };
}

function nameColumn<T extends { readonly metadata: ItemMetadata }>(): Column<T> {
  return { header: 'NAME', cell: ({ metadata }) => metadata.name };
}

function issuerText(certificate: CertificateItem['certificate']): string {
  if (certificate === undefined) return '';
  return certificate.isSelfSigned ? '<self-signed>' : certificate.issuer;
}

function latestEnd({ certificates }: BundleItem): string | undefined {
  return certificates
    .map(({ notAfter }) => notAfter)
    .sort()
    .at(-1);
}

function revisionText({ revisions }: NodeItem, operand: string): string {
  const found = revisions[operand];
  if (found === undefined) return '';
  return found.target > found.current ? `${found.current} -> ${found.target}` : String(found.current);
}

function yes(value: boolean): string {
  return value ? 'True' : 'False';
}
