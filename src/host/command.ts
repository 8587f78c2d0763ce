import { spawn } from 'node:child_process';
import { HostError } from './port.ts';

/** How much a program may print before it is stopped. */
const MOST_OUTPUT_BYTES = 8 * 1024 * 1024;
/** How much of what it complained about is shown (spec 60, section 14). */
const SHOWN_STDERR = 256;
const DEFAULT_TIMEOUT_MS = 90_000;
/** How long a program that was told to end may take before it is killed. */
const KILL_AFTER_MS = 10_000;

export interface CommandOptions {
  readonly timeoutMs?: number;
  /** Given on standard input; for what must not be seen in a list of processes. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface CommandResult {
  /** Exit code, or 128 and more when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs programs; argument vectors only, there is no shell. */
export type RunCommand = (argv: readonly string[], options?: CommandOptions) => Promise<CommandResult>;

/** Runs a program to its end, whatever its exit code. Throws when it cannot be started, is too slow or prints too much. */
export const runCommand: RunCommand = (argv, options = {}) => {
  const [program, ...args] = argv;
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  return new Promise((resolve, reject) => {
    const child = spawn(program ?? '', args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, LC_ALL: 'C', ...options.env },
    });
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    let bytes = 0;
    let failure: HostError | undefined;
    let killer: NodeJS.Timeout | undefined;
    const stop = (message: string) => {
      if (failure !== undefined) return;
      failure = new HostError('command', `${program}: ${message}`);
      child.kill('SIGTERM');
      killer = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS);
    };
    const timer = setTimeout(() => stop(`did not end within ${timeoutMs} ms`), timeoutMs);
    for (const [stream, chunks] of [
      [child.stdout, stdout],
      [child.stderr, stderr],
    ] as const) {
      stream.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= MOST_OUTPUT_BYTES) chunks.push(chunk);
        else stop(`printed more than ${MOST_OUTPUT_BYTES} bytes`);
      });
    }
    child.on('error', error => {
      clearTimeout(timer);
      clearTimeout(killer);
      reject(new HostError('command', `${program} could not be run: ${error.message}`, { cause: error }));
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      clearTimeout(killer);
      if (failure !== undefined) return reject(failure);
      const text = (chunks: Buffer[]) => Buffer.concat(chunks).toString('utf8');
      resolve({ code: code ?? (signal === null ? 1 : 128), stdout: text(stdout), stderr: text(stderr) });
    });
    child.stdin.on('error', () => {}); // It ended without reading.
    child.stdin.end(options.input ?? '');
  });
};

/** Runs a program that must succeed and gives what it printed. */
export async function commandOutput(
  run: RunCommand,
  argv: readonly string[],
  options?: CommandOptions,
): Promise<string> {
  const { code, stdout, stderr } = await run(argv, options);
  if (code === 0) return stdout;
  throw new HostError(
    'command',
    `${argv[0]} ${argv[1] ?? ''} ended with ${code}: ${truncated(stderr.trim(), SHOWN_STDERR)}`,
  );
}

/** A text that is not longer than `limit`, with a note of what was cut (spec 60, section 14). */
export function truncated(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)} [${text.length - limit} more chars]`;
}
