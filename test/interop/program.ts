import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { PATIENCE_MS } from '../tools/eventually.ts';

/** Where a program is, undefined if it is not installed. */
export function find(program: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/local/go/bin'];
  return folders.map(folder => join(folder, program)).find(isExecutable);
}

export interface Run {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly input?: string;
  readonly timeoutMs?: number;
}

/** Runs a program to its end and gives its output. A failure carries what it said. */
export function run(
  file: string,
  args: readonly string[],
  { cwd, env, input = '', timeoutMs = PATIENCE_MS }: Run = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { cwd, env: { ...process.env, ...env }, timeout: timeoutMs, maxBuffer: 256 * 1024 * 1024 };
    const child = execFile(file, args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${file} ${args.join(' ')}: ${stderr || stdout || error.message}`, { cause: error }));
      else resolve(stdout);
    });
    // A program that ends without reading is no failure.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
