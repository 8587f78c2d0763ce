import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { inTime } from './eventually.ts';

/** How a process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Waits for the end of a process, which may have come already. */
export async function ended(child: ChildProcess): Promise<Ending> {
  if (child.exitCode === null && child.signalCode === null)
    await inTime(`the end of ${commandOf(child)}`, once(child, 'exit'));
  return { code: child.exitCode, signal: child.signalCode };
}

/** Sends a process a signal and waits for its end. */
export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<Ending> {
  child.kill(signal);
  return ended(child);
}

/** The first line that a process prints; its standard output is read on, and thrown away. */
export async function firstLine(child: ChildProcess, detail: () => string = () => ''): Promise<string> {
  let text = '';
  const line = new Promise<string>((resolve, reject) => {
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (text.includes('\n')) resolve(text);
    });
    child.stdout?.once('end', () => reject(new Error(`${commandOf(child)} ended without a line: ${text}${detail()}`)));
  });
  return inTime(`the first line of ${commandOf(child)}`, line, () => `${text}${detail()}`);
}

function commandOf({ spawnargs }: ChildProcess): string {
  return spawnargs.join(' ').slice(0, 200);
}
