import { CLUSTER_OPERATORS } from '../../controller/cluster-operator-status.ts';
import { inventoryOf, readObjects } from '../../inventory/read.ts';
import { clusterSource, type ObjectSource } from '../../inventory/source.ts';
import { sleep, systemClock } from '../../kube/clock.ts';
import { parseGoDuration, seconds } from '../../kube/duration.ts';
import { isTransient } from '../../kube/error.ts';
import { withCluster } from '../cluster.ts';
import { namespaceFrom, positiveDurationFrom } from '../cluster-flags.ts';
import { machineFormatFrom, type OutputFormat } from '../output/format.ts';
import { API_VERSION, printDocument, refuseBadTemplate } from '../output/print.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { WaitFlags } from './command.ts';

/** What is still missing, in words; empty: nothing. Throws `NotThere` for names that nothing has. */
type Question = (source: ObjectSource) => Promise<readonly string[]>;

class NotThere extends Error {}

/** As `oc adm wait-for-stable-cluster` has it: operators take turns, and one good moment says little (spec 70, 3). */
const STABLE_FOR = '5m';

const ASK_EVERY_MS = seconds(1);
const ASK_EVERY_LATER_MS = seconds(5);

/** Asks until nothing is missing, for long enough, or the time is over. */
export async function runWait(objects: readonly string[], flags: WaitFlags): Promise<void> {
  const timeoutMs = positiveDurationFrom('--timeout', flags.timeout);
  const question = questionFrom(objects, flags);
  const stablePeriod = flags.minimumStablePeriod ?? (flags.for === 'stable' ? STABLE_FOR : '0s');
  const stableMs = parseGoDuration(stablePeriod);
  if (stableMs === undefined || stableMs < 0) {
    throw new UsageError(`--minimum-stable-period must be a duration such as 5m, found "${stablePeriod}"`);
  }
  if (stableMs >= timeoutMs)
    throw new UsageError(`--timeout must be longer than --minimum-stable-period, which is ${stablePeriod}`);
  const format = machineFormatFrom(flags.output);
  if (format !== undefined) refuseBadTemplate(format);
  const began = performance.now();
  await withCluster(flags, async ({ kube }) => {
    const source = clusterSource(kube);
    let goodSince: number | undefined;
    let told = '';
    let hasAnswered = false;
    for (;;) {
      const answer = question(source).then(found => {
        hasAnswered = true;
        return found;
      });
      const missing = await answer.catch((error: unknown) => {
        // What was there once comes back; a name that nothing ever had is a mistake.
        if (error instanceof NotThere && hasAnswered) return [error.message];
        // API servers restart while certificates change; that is part of what is waited for.
        if (!isTransient(error)) throw error;
        return [`the API does not answer: ${(error as Error).message}`];
      });
      const nowMs = performance.now();
      goodSince = missing.length === 0 ? (goodSince ?? nowMs) : undefined;
      if (goodSince !== undefined && nowMs - goodSince >= stableMs) return;
      const text = missing.length === 0 ? 'good, watching whether it stays so' : missing.join('; ');
      if (text !== told) process.stderr.write(`waiting: ${visible(text)}\n`);
      told = text;
      if (nowMs - began >= timeoutMs) throw new Error(`gave up after ${flags.timeout}: ${told}`);
      await sleep(systemClock, Math.min(nowMs - began < 60_000 ? ASK_EVERY_MS : ASK_EVERY_LATER_MS, timeoutMs));
    }
  });
  process.stdout.write(render(flags.for, objects, performance.now() - began, format));
}

function render(what: string, objects: readonly string[], waitedMs: number, format: OutputFormat | undefined): string {
  if (format === undefined) return `${what}${objects.length > 0 ? `: ${objects.join(', ')}` : ''}\n`;
  if (format.kind === 'name') return objects.map(object => `${object}\n`).join('');
  const waitedSeconds = Math.round(waitedMs / 1000);
  return printDocument({ apiVersion: API_VERSION, kind: 'WaitResult', for: what, objects, waitedSeconds }, format);
}

function questionFrom(objects: readonly string[], flags: WaitFlags): Question {
  const namespace = namespaceFrom(flags);
  switch (flags.for) {
    case 'stable':
      if (objects.length > 0) throw new UsageError('--for stable takes no objects: it is about the whole cluster');
      return unstableOperators;
    case 'regenerated': {
      const names = namesOf(objects, 'secret', ['secret', 'secrets']);
      return source => pendingCertificates(source, names, namespace);
    }
    case 'rolled-out':
      if (objects.length === 0) throw new UsageError('--for rolled-out needs an operand, such as kube-apiserver');
      return source => behindRevision(source, objects);
    case 'updated': {
      const names = namesOf(objects, 'pool', ['pool', 'pools', 'mcp', 'machineconfigpool', 'machineconfigpools']);
      return source => behindPools(source, names);
    }
    default:
      throw new UsageError(`--for must be stable, regenerated, rolled-out or updated, found "${flags.for}"`);
  }
}

function namesOf(objects: readonly string[], kind: string, words: readonly string[]): string[] {
  if (objects.length === 0) throw new UsageError(`name at least one ${kind}/NAME`);
  return objects.map(text => {
    const [, word, name] = /^(?:([^/]+)\/)?([^/]+)$/.exec(text) ?? [];
    if (name === undefined || (word !== undefined && !words.includes(word.toLowerCase()))) {
      throw new UsageError(`expected ${kind}/NAME, found "${text}"`);
    }
    return name;
  });
}

const WANTED = { Available: 'True', Progressing: 'False', Degraded: 'False' } as const;

async function unstableOperators(source: ObjectSource): Promise<string[]> {
  const operators = await source.list(CLUSTER_OPERATORS);
  if (operators.length === 0) return ['the cluster has no ClusterOperators'];
  return operators.flatMap(({ metadata, status }) => {
    const wrong = Object.entries(WANTED).flatMap(([type, wanted]) => {
      const found = status?.conditions?.find(condition => condition.type === type);
      if (found?.status === wanted) return [];
      const since = found?.lastTransitionTime === undefined ? '' : ` since ${found.lastTransitionTime}`;
      return [`${type}=${found?.status ?? 'Unknown'}${since}`];
    });
    return wrong.length === 0 ? [] : [`${metadata?.name} is ${wrong.join(', ')}`];
  });
}

async function pendingCertificates(
  source: ObjectSource,
  names: readonly string[],
  namespace: string | undefined,
): Promise<string[]> {
  const { certificates } = inventoryOf(await readObjects(source, { parts: ['certificates'] }), new Date());
  return names.flatMap(name => {
    const found = certificates.filter(
      ({ metadata }) => metadata.name === name && (namespace === undefined || metadata.namespace === namespace),
    );
    if (found.length === 0) throw new NotThere(`secret/${name} is not there`);
    return found
      .filter(({ state }) => state !== 'Good')
      .map(({ state, problem }) => `secret/${name} is ${state}: ${problem ?? ''}`);
  });
}

async function behindRevision(source: ObjectSource, wanted: readonly string[]): Promise<string[]> {
  const { operands } = await readObjects(source, { parts: ['nodes'] });
  const unknown = wanted.find(name => !operands.some(({ operand }) => operand === name));
  if (unknown !== undefined) {
    throw new UsageError(
      `there is no operand "${unknown}": known are ${operands.map(({ operand }) => operand).join(', ')}`,
    );
  }
  return operands
    .filter(({ operand }) => wanted.includes(operand))
    .flatMap(({ operand, resource }) => {
      const { latestAvailableRevision = 0, nodeStatuses = [] } = resource?.status ?? {};
      if (nodeStatuses.length === 0) return [`${operand} runs on no node yet`];
      return nodeStatuses
        .filter(({ currentRevision }) => currentRevision !== latestAvailableRevision)
        .map(
          ({ nodeName, currentRevision }) =>
            `${operand} on ${nodeName} runs revision ${currentRevision ?? 0} of ${latestAvailableRevision}`,
        );
    });
}

async function behindPools(source: ObjectSource, names: readonly string[]): Promise<string[]> {
  const { pools } = inventoryOf(await readObjects(source, { parts: ['pools'] }), new Date());
  return names.flatMap(name => {
    const pool = pools.find(({ metadata }) => metadata.name === name);
    if (pool === undefined) throw new NotThere(`pool/${name} is not there`);
    return pool.updated ? [] : [`pool/${name}: ${pool.updatedCount} of ${pool.machineCount} machines updated`];
  });
}
