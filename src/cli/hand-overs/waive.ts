import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { WAIVED } from '../../hand-over/names.ts';
import { isWaived } from '../../hand-over/waiver.ts';
import type { HandOverItem, ReceiptItem } from '../../inventory/model.ts';
import { EventWriter } from '../../kube/event-writer.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { OPERATOR_NAMESPACE } from '../../kube-apiserver/namespaces.ts';
import { withCluster } from '../cluster.ts';
import { confirm } from '../confirm.ts';
import { kindAndNames } from '../get/words.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { WaiveFlags } from './command.ts';
import { readHandOvers } from './items.ts';

export async function runWaive(words: readonly string[], flags: WaiveFlags): Promise<void> {
  const { kind, names } = kindAndNames(words);
  if (!['node', 'nodes', 'no'].includes(kind))
    throw new UsageError(`only nodes can be waived: expected node/NAME, found "${words.join(' ')}"`);
  if (names.length === 0) throw new UsageError('say which node: node/NAME');
  await withCluster(flags, async ({ kube }) => {
    const now = new Date();
    const found = await Promise.all(
      names.map(async name => ({ name, node: await getIfPresent(kube, NODES, { name }) })),
    );
    const missing = found.filter(({ node }) => node === undefined);
    if (missing.length > 0) throw new Error(missing.map(({ name }) => `node "${name}" not found`).join('; '));
    const isWanted = !flags.remove;
    const nodes = found.flatMap(({ node }) => node ?? []);
    const changing = nodes.filter(node => isNoted(node) !== isWanted || isWaived(node) !== isWanted);
    if (isWanted && changing.length > 0) {
      const handOvers = await readHandOvers(kube, now);
      for (const node of changing) {
        for (const line of whatWaivingMeans(node, handOvers)) process.stderr.write(`${visible(line)}\n`);
      }
      if (!flags.dryRun) await confirm(`Hand-overs go on without ${changing.map(nameOf).join(', ')}.`, flags.yes);
    }
    for (const node of nodes) {
      const told = isWanted ? 'waived' : 'is waited for again';
      if (!changing.includes(node))
        process.stdout.write(
          `${visible(`node/${nameOf(node)} ${isWanted ? 'is waived already' : 'is not waived'}`)}\n`,
        );
      else {
        await waiveNode(kube, nameOf(node), { isWanted, dryRun: flags.dryRun ?? false }, now);
        const dry = flags.dryRun ? ' (dry run: nothing was written)' : '';
        process.stdout.write(`${visible(`node/${nameOf(node)} ${told}${dry}`)}\n`);
      }
    }
  });
}

/** Who is cut off by it, by name, and what ends it (spec 90, HO-7). */
export function whatWaivingMeans(node: Node, handOvers: readonly HandOverItem[]): string[] {
  const name = nameOf(node);
  const cutOff = handOvers.flatMap(({ metadata, receipts, presenters, waitingFor }) => {
    const here = (all: readonly ReceiptItem[]) =>
      all.filter(({ verifier, node: at }) => at === name && waitingFor.includes(verifier));
    return [
      ...here(receipts).map(
        ({ verifier, evidence }) => `${verifier} will refuse what ${metadata.name} signs: ${evidence}`,
      ),
      ...here(presenters).map(
        ({ verifier, evidence }) =>
          `${verifier} may be refused once the CA before ${metadata.name} is gone: ${evidence}`,
      ),
    ];
  });
  const isReady = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
  return [
    ...(cutOff.length === 0
      ? [`no hand-over waits for node ${name} now; those to come will not wait for it either`]
      : cutOff),
    ...(isReady ? [`node ${name} is ready: what runs on it is in use`] : []),
    `it counts again when node ${name} becomes ready the next time, or with --remove`,
  ];
}

/** Notes on the Node that nobody waits for it, or takes the note away; events remain. */
export async function waiveNode(
  kube: Kube,
  name: string,
  { isWanted, dryRun }: { readonly isWanted: boolean; readonly dryRun: boolean },
  now: Date,
): Promise<void> {
  const annotations = { [WAIVED]: isWanted ? formatRfc3339(now) : null };
  await kube.patch(
    NODES,
    { name },
    { type: 'merge', body: { metadata: { annotations } } },
    { dryRun, fieldManager: MANAGER },
  );
  if (dryRun) return;
  const writer = new EventWriter(kube, { onError: warn });
  const places = [
    { kind: 'Node', apiVersion: 'v1', name, uid: name },
    { kind: 'Namespace', apiVersion: 'v1', name: OPERATOR_NAMESPACE, namespace: OPERATOR_NAMESPACE },
  ];
  const message = isWanted
    ? `hand-overs of signers do not wait for node "${name}" any more: somebody waived it`
    : `hand-overs of signers wait for node "${name}" again: somebody removed its waiver`;
  for (const place of places) {
    writer
      .recorder('rotunda', place)
      .event(isWanted ? 'Warning' : 'Normal', isWanted ? 'HandOverWaived' : 'HandOverWaiverRemoved', message);
  }
  await writer.stop();
}

const MANAGER = 'rotunda-waive';

function warn(error: unknown): void {
  process.stderr.write(`warning: the event could not be written: ${visible((error as Error).message)}\n`);
}

function isNoted({ metadata }: Node): boolean {
  return metadata?.annotations?.[WAIVED] !== undefined;
}

function nameOf({ metadata }: Node): string {
  return metadata?.name ?? '';
}
