/** Prints what failed and what was skipped at once, a line for every file when all are done, and the counts as the last line. */
import { relative } from 'node:path';
import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';
import { type Counts, sum, writeCounts } from './counts.ts';

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const results = new Map<string, Counts>();
  const count = (file: string, kind: keyof Counts) => {
    const counts = results.get(file) ?? { passed: 0, failed: 0, skipped: 0 };
    results.set(file, { ...counts, [kind]: counts[kind] + 1 });
  };
  const failed = (file: string, name: string, why: string) => {
    count(file, 'failed');
    return `FAILED ${file}: ${name}\n${why}\n\n`;
  };
  for await (const { type, data } of events) {
    // What went wrong when the test that began it was over.
    if (type === 'test:diagnostic' && data.message.startsWith('Error:'))
      yield failed(fileOf(data), 'after the end of a test', data.message);
    if (type === 'test:interrupted')
      for (const test of data.tests) yield failed(fileOf(test), test.name, 'not done in time');
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const error = type === 'test:fail' ? data.details.error : undefined;
    const isOwnFailure = error !== undefined && !('failureType' in error && error.failureType === 'subtestsFailed');
    // The tests of a suite speak for it, unless it was skipped or its hooks failed.
    if (data.details.type === 'suite' && data.skip === undefined && !isOwnFailure) continue;
    const file = fileOf(data);
    if (error !== undefined) {
      yield failed(file, data.name, inspect(error.cause ?? error));
    } else if (data.skip !== undefined) {
      count(file, 'skipped');
      yield `skipped ${file}: ${data.name}: ${data.skip === true ? 'no reason given' : data.skip}\n`;
    } else {
      count(file, 'passed');
    }
  }
  const took = FILES.length === 1 ? `, ${Math.round(performance.now() / 1000)} s` : '';
  for (const [file, counts] of results)
    yield `${counts.failed > 0 ? 'FAILED' : 'ok'} ${file}: ${writeCounts(counts)}${took}\n`;
  yield `${writeCounts(sum([...results.values()]))}\n`;
}

const FILES = process.argv.slice(1);

/** A test may stand in another file than the one that was asked for. */
function fileOf({ file = '' }: { file?: string | undefined }): string {
  return FILES.length === 1 ? (FILES[0] as string) : relative('', file);
}
