import { LiveSource } from '../../inventory/live-source.ts';
import { type InventoryObjects, readInventory } from '../../inventory/read.ts';
import type { ObjectSource } from '../../inventory/source.ts';
import { type Cluster, withCluster } from '../cluster.ts';
import { namespaceFrom, refuseBoth } from '../cluster-flags.ts';
import { handOverItems } from '../hand-overs/items.ts';
import { lookAround, withLook } from '../look/around.ts';
import { layoutOf } from '../look/layout.ts';
import { saidLayout } from '../look/layout-flag.ts';
import { seenKind } from '../look/listing.ts';
import type { Layout, Look } from '../look/look.ts';
import { nowFrom } from '../moment.ts';
import { withSource } from '../open-source.ts';
import { type OutputFormat, outputFormatFrom } from '../output/format.ts';
import { documentOf, printDocument, printItems, refuseBadTemplate } from '../output/print.ts';
import { untilStopped } from '../signals.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import { adoptedHandOvers } from './adopted-hand-overs.ts';
import type { GetFlags } from './command.ts';
import { type Item, type Kind, kindsAt } from './listings.ts';
import { type ItemNews, ShownItems } from './news.ts';
import { orderFrom, selectorFrom } from './select.ts';
import { GET_KINDS, kindAndNames } from './words.ts';

/** One question: which items of which kind, in which order and form. */
interface Question {
  readonly word: string;
  readonly names: readonly string[];
  readonly namespace: string | undefined;
  readonly format: OutputFormat;
  readonly flags: GetFlags;
  readonly selects: (item: Item) => boolean;
  readonly order: ReturnType<typeof orderFrom>;
}

/** Prints the answer of `rotunda get`, and with `-w` what changes from then on. */
export async function runGet(words: readonly string[], flags: GetFlags): Promise<void> {
  const question = questionFrom(words, flags);
  if (!flags.watch) {
    await withSource(flags, async (source, cluster) => {
      const now = nowFrom(flags.now);
      const look = listsCertificates(question) ? await lookAround(flags, cluster, now) : undefined;
      const layout = await layoutOfHandOvers(question, cluster);
      const { kind, items, nothing } = await answer(question, source, now, { look, layout });
      process.stdout.write(render(question, kind, items, true, look));
      reportMissing(question, items, { look, nothing });
      if (look?.failure !== undefined) throw look.failure;
    });
    return;
  }
  refuseBoth(flags);
  if (flags.from !== undefined) throw new UsageError('--watch and --from contradict each other: files do not change');
  await withCluster(flags, async cluster => {
    if (listsCertificates(question) && (await layoutOf(flags, cluster)) === 'kubeadm') {
      process.stderr.write(
        'note: only objects of the API are watched; rotunda get certs shows what servers show, too\n',
      );
    }
    const layout = await layoutOfHandOvers(question, cluster);
    const source = new LiveSource(cluster.kube);
    try {
      await watch(question, source, layout);
    } finally {
      await source.stop();
    }
  });
}

function questionFrom(words: readonly string[], flags: GetFlags): Question {
  const { kind: word, names } = kindAndNames(words);
  const known = kindsAt(new Date(0)).find(candidate => candidate.words.includes(word));
  if (known === undefined) throw new UsageError(`there is no type "${word}": known are ${GET_KINDS.join(', ')}`);
  const namespace = namespaceFrom(flags);
  if (namespace !== undefined && !known.namespaced)
    throw new UsageError(`${word} have no namespace: leave --namespace out`);
  if (names.length > 0 && (flags.selector !== undefined || flags.fieldSelector !== undefined)) {
    throw new UsageError('names and a selector contradict each other: give one of them');
  }
  const format = outputFormatFrom(flags.output);
  refuseBadTemplate(format);
  if (flags.outputWatchEvents && !flags.watch) throw new UsageError('--output-watch-events goes with --watch only');
  if (flags.ask && !known.parts.includes('hand-overs')) throw new UsageError('--ask goes with hand-overs only');
  if (flags.ask && (flags.watch || flags.from !== undefined))
    throw new UsageError(`--ask and --${flags.watch ? 'watch' : 'from'} contradict each other: give one of them`);
  nowFrom(flags.now);
  const selects = selectorFrom(flags.selector, flags.fieldSelector);
  return { word, names, namespace, format, flags, selects, order: orderFrom(flags.sortBy) };
}

/** What is in no object has no namespace either. */
function listsCertificates({ word, namespace, flags }: Question): boolean {
  const kind = kindsAt(new Date(0)).find(candidate => candidate.words.includes(word));
  return kind?.parts.includes('certificates') === true && namespace === undefined && flags.selector === undefined;
}

/** Of a cluster that kubeadm made other objects say where hand-overs stand. Of files it may be told by them. */
async function layoutOfHandOvers({ word, flags }: Question, cluster: Cluster | undefined): Promise<Layout | undefined> {
  const kind = kindsAt(new Date(0)).find(candidate => candidate.words.includes(word));
  if (!kind?.parts.includes('hand-overs')) return 'openshift';
  return cluster === undefined ? saidLayout(flags.layout) : await layoutOf(flags, cluster);
}

interface Answer {
  readonly kind: Kind;
  readonly items: readonly Item[];
  /** Why there are none. */
  readonly nothing?: string | undefined;
}

interface Seen {
  readonly look?: Look | undefined;
  readonly layout: Layout | undefined;
}

async function answer(question: Question, source: ObjectSource, now: Date, { look, layout }: Seen): Promise<Answer> {
  const { word, names, namespace, selects, order, flags } = question;
  const kind = kindsAt(now).find(candidate => candidate.words.includes(word)) as Kind;
  const isChosen = (item: Item) =>
    (namespace === undefined || item.metadata.namespace === namespace) &&
    (names.length === 0 || names.includes(item.metadata.name)) &&
    selects(item);
  const adopted = await adoptedHandOvers(source, kind, layout, now);
  if (adopted !== undefined) {
    if (flags.ask) throw new UsageError('--ask: agents of an adopted cluster report by themselves, leave it out');
    const items = adopted.items.filter(isChosen);
    return { ...adopted, items: order === undefined ? items : items.toSorted(order) };
  }
  const asking = flags.ask ? 'everybody' : flags.watch || flags.from !== undefined ? 'notes' : 'missing';
  const handOvers = kind.parts.includes('hand-overs')
    ? (objects: InventoryObjects) => handOverItems(objects, source, now, asking)
    : undefined;
  const objects = { parts: kind.parts, namespace, handOvers };
  const inventory = look === undefined ? await readInventory(source, objects, now) : await withLook(source, look, now);
  const items = kind.items(inventory).filter(isChosen);
  // A stray file among the objects of a must-gather does not make it a folder of files.
  const isSeen =
    look !== undefined &&
    look.items.length > 0 &&
    kind.kind !== 'Bundle' &&
    (look.layout === 'kubeadm' || inventory.certificates.every(({ seen }) => seen !== undefined));
  return {
    kind: isSeen ? seenKind(kind, look.unseen, now) : kind,
    items: order === undefined ? items : items.toSorted(order),
  };
}

function render(question: Question, kind: Kind, items: readonly Item[], withHeader = true, look?: Look): string {
  const { format, flags, names, namespace } = question;
  const printed = printItems(kind, items, format, {
    isSingle: names.length === 1 && items.length === 1,
    withHeader: withHeader && flags.headers,
    hide: namespace === undefined ? [] : ['NAMESPACE'],
    ...(look === undefined || look.items.length === 0 ? {} : { more: { layout: look.layout, unseen: look.unseen } }),
  });
  const isForPeople = (format.kind === 'table' || format.kind === 'wide') && flags.headers && !flags.watch;
  const summary = isForPeople && items.length > 0 ? kind.summary?.(items) : undefined;
  return summary === undefined ? printed : visibleLines(summary.first) + printed + visibleLines(summary.last);
}

function visibleLines(text: string): string {
  return text === '' ? '' : `${text.split('\n').map(visible).join('\n')}\n`;
}

function reportMissing(
  { names, word, namespace }: Question,
  items: readonly Item[],
  { look, nothing }: { readonly look?: Look | undefined; readonly nothing?: string | undefined },
): void {
  const where = namespace === undefined ? '' : ` in namespace ${namespace}`;
  const why = nothing === undefined ? '' : `: ${visible(nothing)}`;
  for (const name of names.filter(wanted => !items.some(({ metadata }) => metadata.name === wanted))) {
    process.stderr.write(`error: ${word} "${name}" not found${where}${why}\n`);
    process.exitCode = 1;
  }
  if (items.length > 0 || names.length > 0) return;
  process.stderr.write(`no ${word} found${where}${why}\n`);
  if (look === undefined) return;
  if (look.items.length > 0)
    process.stderr.write(`${look.items.length} certificates were seen elsewhere: rotunda get certs\n`);
  for (const text of look.unseen) process.stderr.write(`not seen from here: ${visible(text)}\n`);
}

/** Changes that come together are told together. */
const GATHER_MS = 100;

async function watch(question: Question, source: LiveSource, layout: Layout | undefined): Promise<void> {
  const shown = new ShownItems();
  let isFirst = true;
  const show = async () => {
    const { kind, items, nothing } = await answer(question, source, nowFrom(question.flags.now), { layout });
    process.stdout.write(renderNews(question, kind, shown.newsIn(items), isFirst));
    if (isFirst) reportMissing(question, items, { nothing });
    isFirst = false;
  };
  const stopped = untilStopped();
  const failed = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  // One after the other, and from before the first: what changes while the list is made is told after it.
  let turn = Promise.resolve();
  const next = () => {
    turn = turn.then(show);
    turn.catch(failed.reject);
  };
  source.subscribe(() => {
    timer ??= setTimeout(() => {
      timer = undefined;
      next();
    }, GATHER_MS);
  });
  next();
  try {
    await Promise.race([stopped, failed.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Rows as of a list; with `--output-watch-events` each with what happened to it, as kubectl does. */
function renderNews(question: Question, kind: Kind, news: readonly ItemNews[], isFirst: boolean): string {
  const { format, flags } = question;
  if (news.length === 0) return '';
  if (!flags.outputWatchEvents) {
    const items = news.map(({ item }) => item);
    return render(question, kind, items, isFirst);
  }
  const typeOf = new Map(news.map(({ type, item }) => [item, type]));
  if (format.kind === 'table' || format.kind === 'wide' || format.kind === 'name') {
    const columns = [{ header: 'EVENT', cell: (item: Item) => typeOf.get(item) ?? '' }, ...kind.columns];
    const name = (item: Item) => `${typeOf.get(item)} ${kind.name(item)}`;
    return render(question, { ...kind, columns, name }, [...typeOf.keys()], isFirst);
  }
  return news
    .map(({ type, item }, index) =>
      printDocument({ type, object: documentOf(kind, [item], true) }, format, isFirst && index === 0 && flags.headers),
    )
    .join('');
}
