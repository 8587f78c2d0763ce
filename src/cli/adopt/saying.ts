import { visible } from '../table.ts';

/** Sentences for people, each on its own line. */
export function lines(...texts: readonly (readonly string[])[]): string {
  return texts
    .flat()
    .map(text => `${visible(text)}\n`)
    .join('');
}

/** Beside the result: what goes on. */
export function tell(text: string): void {
  process.stderr.write(lines([text]));
}

/** Runs `work` until it ends or somebody stops it; a second time ends the process at once. */
export async function untilInterrupted<T>(whenStopped: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort();
  };
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const signal of signals) process.on(signal, stop);
  try {
    return await work(controller.signal);
  } catch (error) {
    if (controller.signal.aborted) throw new Error(whenStopped, { cause: error });
    throw error;
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}
