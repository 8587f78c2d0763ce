import { etcdTrust } from '../../etcd/trust.ts';
import type {
  BundleItem,
  CertificateFacts,
  CertificateItem,
  HandOverItem,
  NextDecision,
  SeenCertificate,
} from '../../inventory/model.ts';
import { type InventoryObjects, readInventory } from '../../inventory/read.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import { effectOfChange, verdictOf } from '../../trust/effect.ts';
import { joinGraphs, type TrustGraph } from '../../trust/graph.ts';
import { isSameObject, type ObjectRef, objectText } from '../../trust/object.ts';
import { namespaceFrom } from '../cluster-flags.ts';
import { type Item, type Kind, kindsAt } from '../get/listings.ts';
import { GET_KINDS, kindAndNames } from '../get/words.ts';
import { type Entry, handOverEntries, isOfSigner } from '../hand-overs/describe.ts';
import { handOverItems } from '../hand-overs/items.ts';
import { lookAround, withLook } from '../look/around.ts';
import { nowFrom } from '../moment.ts';
import { withSource } from '../open-source.ts';
import { machineFormatFrom } from '../output/format.ts';
import { printItems, refuseBadTemplate } from '../output/print.ts';
import { shortDuration } from '../output/time.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { DescribeFlags } from './command.ts';

export async function runDescribe(words: readonly string[], flags: DescribeFlags): Promise<void> {
  const { kind: word, names } = kindAndNames(words);
  const now = nowFrom(flags.now);
  const namespace = namespaceFrom(flags);
  const format = machineFormatFrom(flags.output);
  if (format !== undefined) refuseBadTemplate(format);
  const kind = kindsAt(now).find(candidate => candidate.words.includes(word));
  if (kind === undefined) throw new UsageError(`there is no type "${word}": known are ${GET_KINDS.join(', ')}`);
  if (names.length === 0) throw new UsageError(`say which ${word} to describe`);
  const hasHandOvers = kind.parts.some(part => part === 'certificates' || part === 'hand-overs');
  const parts = hasHandOvers ? [...kind.parts, 'hand-overs' as const] : kind.parts;
  const inventory = await withSource(flags, async (source, cluster) => {
    const look = kind.parts.includes('certificates') ? await lookAround(flags, cluster, now) : undefined;
    if (look !== undefined && look.items.some(({ metadata }) => names.includes(metadata.name)))
      return withLook(source, look, now);
    const asking = flags.from === undefined ? 'missing' : 'notes';
    const handOvers = (objects: InventoryObjects) => handOverItems(objects, source, now, asking);
    return readInventory(source, { parts, namespace, ...(hasHandOvers ? { handOvers } : {}) }, now);
  });
  const handOverOf = (item: Item) =>
    'chainLength' in item ? inventory.handOvers?.find(found => isOfSigner(found, item)) : undefined;
  const items = kind
    .items(inventory)
    .filter(
      ({ metadata }) => names.includes(metadata.name) && (namespace === undefined || metadata.namespace === namespace),
    );
  process.stdout.write(
    format === undefined
      ? items.map(item => described(kind, item, handOverOf(item), now)).join('\n')
      : printItems(
          kind,
          items.map(item => withEffects(item, handOverOf(item))),
          format,
          { isSingle: names.length === 1 && items.length === 1 },
        ),
  );
  for (const name of names.filter(wanted => !items.some(({ metadata }) => metadata.name === wanted))) {
    process.stderr.write(
      `error: ${word} "${name}" not found${namespace === undefined ? '' : ` in namespace ${namespace}`}\n`,
    );
    process.exitCode = 1;
  }
}

function described(kind: Kind, item: Item, handOver: HandOverItem | undefined, now: Date): string {
  const { metadata } = item;
  const entries: Entry[] = [
    ['Name', metadata.name],
    ['Namespace', metadata.namespace],
    ['Labels', Object.entries(metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`)],
    ['Created', metadata.creationTimestamp],
  ];
  if ('chainLength' in item) {
    entries.push(...certificateEntries(item, now));
    if (handOver !== undefined) entries.push(...handOverEntries(handOver, now));
  } else if ('asks' in item) entries.push(...handOverEntries(item, now));
  else if ('keys' in item) entries.push(...bundleEntries(item, now));
  else {
    // The columns say it all.
    for (const { header, cell } of kind.columns) {
      if (!['NAME', 'NAMESPACE', 'AGE'].includes(header)) entries.push([titled(header), cell(item)]);
    }
    if ('reason' in item) entries.push(['Full reason', item.reason.split('\n')]);
  }
  return render(entries);
}

function certificateEntries(item: CertificateItem, now: Date): Entry[] {
  const { certificate, next, metadata } = item;
  const ref: ObjectRef = { kind: 'Secret', namespace: metadata.namespace ?? '', name: metadata.name };
  return [
    ['Role', item.role],
    ['Purpose', item.purpose],
    ['Description', item.description],
    ['Component', item.component],
    ['State', item.problem === undefined ? item.state : `${item.state}: ${item.problem}`],
    ...(certificate === undefined ? [] : factEntries(certificate, now)),
    ['Chain', item.chainLength === 0 ? 'the certificate alone' : `followed by ${item.chainLength} more`],
    ['In kubeconfigs', item.kubeconfigs],
    ['Signed by', item.signedBy && objectText(item.signedBy)],
    ['Accepted with', item.trustedBy.map(objectText)],
    ...(item.seen?.renewal === 'rotunda' ? [] : nextEntries(next, now)),
    ['Notes', item.notes],
    ...(item.seen === undefined ? effectEntries(ref) : seenEntries(item.seen)),
  ];
}

/** Of one that is in no Secret (spec 80, 10). */
function seenEntries(seen: SeenCertificate): Entry[] {
  const { places, authority, renewal, renewWith, renewsAt, isExternal, atItsEnd } = seen;
  const how = [renewsAt && `at ${renewsAt}`, renewWith].filter(Boolean).join(', ');
  return [
    ['Seen in', [...places]],
    ['CA', authority],
    ['Renewed', how === '' ? renewal : `${renewal}: ${how}`],
    ['External', isExternal ? 'yes: the key of its CA is not here' : 'no'],
    ['At its end', atItsEnd],
  ];
}

function bundleEntries(item: BundleItem, now: Date): Entry[] {
  const ref: ObjectRef = { kind: 'ConfigMap', namespace: item.metadata.namespace ?? '', name: item.metadata.name };
  return [
    ['Role', item.role],
    ['Description', item.description],
    ['Component', item.component],
    ['State', item.problem === undefined ? item.state : `${item.state}: ${item.problem}`],
    ['Keys', item.keys.join(', ')],
    [
      'Authorities',
      item.certificates.map(
        ca =>
          `${ca.subject}, until ${ca.notAfter} (${ca.isExpired ? 'expired' : shortDuration(Date.parse(ca.notAfter) - now.getTime())}), sha256 ${ca.sha256.slice(0, 16)}`,
      ),
    ],
    ...nextEntries(item.next, now),
    ['Notes', item.notes],
    ...effectEntries(ref),
  ];
}

function factEntries(certificate: CertificateFacts, now: Date): Entry[] {
  return [
    ['Subject', certificate.subject],
    ['Issuer', certificate.isSelfSigned ? '<self-signed>' : certificate.issuer],
    ['Groups', certificate.groups.join(', ') || undefined],
    ['Usages', certificate.usages.join(', ')],
    ['Host names', certificate.hostnames],
    ['Valid from', certificate.notBefore],
    ['Valid until', `${certificate.notAfter} (${shortDuration(Date.parse(certificate.notAfter) - now.getTime())})`],
    // Of what an agent reports, the rest is on its node.
    ['Key', certificate.key === '' ? undefined : `${certificate.key}, sha256 ${certificate.keySha256}`],
    ['Signature', certificate.signatureAlgorithm],
    ['Serial', certificate.serial],
    ['Fingerprint', `sha256 ${certificate.sha256}`],
  ];
}

function nextEntries(next: NextDecision | undefined, now: Date): Entry[] {
  if (next === undefined) return [['Next', 'nothing we know of rotates it']];
  const when = next.at === undefined ? 'now' : `${next.at} (in ${shortDuration(Date.parse(next.at) - now.getTime())})`;
  const what = { keep: 'kept until', regenerate: 'regenerate', rewrite: 'rewrite', fail: 'needs a person' }[
    next.action
  ];
  return [
    ['Next', next.action === 'fail' ? what : `${what} ${when}`],
    ['Rule', next.rule],
    ['Reason', next.reason.split('\n')],
  ];
}

const GRAPH: TrustGraph = joinGraphs(kubeApiserverTrust(), etcdTrust());

/** For machines: the item, and what a change of it does. */
function withEffects(item: Item, handOver: HandOverItem | undefined): Item {
  if (!('chainLength' in item) && !('keys' in item)) return item;
  const { namespace = '', name } = item.metadata;
  const ref: ObjectRef = { kind: 'chainLength' in item ? 'Secret' : 'ConfigMap', namespace, name };
  const effects = effectOfChange(GRAPH, ref);
  const change = {
    verdict: verdictOf(effects),
    effects: effects.map(({ kind, path, delivery, uses }) => ({
      kind,
      processes: [...new Set(uses.map(({ process }) => process))],
      nodes: delivery.nodes,
      directory: delivery.hostDirectory,
      path: path.map(objectText),
    })),
    connections: connectionsOf(ref),
  };
  return Object.assign({}, item, { change, ...(handOver === undefined ? {} : { handOver }) });
}

function connectionsOf(ref: ObjectRef): string[] {
  const holds = GRAPH.edges.filter(({ client, server }) =>
    [client, server].some(({ presents, verifiesWith }) =>
      [presents, verifiesWith].some(
        held => typeof held === 'object' && 'object' in held && isSameObject(held.object, ref),
      ),
    ),
  );
  return holds.map(({ name }) => name);
}

function effectEntries(ref: ObjectRef): Entry[] {
  const effects = effectOfChange(GRAPH, ref);
  return [
    ['A change', verdictOf(effects) === 'none' ? undefined : verdictOf(effects)],
    [
      'On nodes',
      effects.map(({ kind, path, delivery, uses }) => {
        const way = path.length > 1 ? ` by way of ${path.slice(1).map(objectText).join(', ')}` : '';
        const who = [...new Set(uses.map(({ process }) => process))].join(', ');
        return `${kind}: ${who} (${delivery.nodes} nodes, ${delivery.hostDirectory})${way}`;
      }),
    ],
    ['Connections', connectionsOf(ref)],
  ];
}

function titled(header: string): string {
  const words = header.toLowerCase().replaceAll('-', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function render(entries: readonly Entry[]): string {
  const present = entries.filter(([, value]) => value !== undefined && value.length > 0);
  const width = Math.max(...present.map(([label]) => label.length)) + 1;
  return present
    .map(([label, value]) => {
      const [first = '', ...rest] = typeof value === 'string' ? [value] : (value ?? []);
      const lines = [
        `${`${label}:`.padEnd(width + 1)}${visible(first)}`,
        ...rest.map(line => ' '.repeat(width + 1) + visible(line)),
      ];
      return `${lines.join('\n')}\n`;
    })
    .join('');
}
