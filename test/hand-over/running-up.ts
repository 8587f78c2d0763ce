import { type ChildProcess, spawn } from 'node:child_process';
import { descendants, signal, startOf } from './processes.ts';

const MAIN = new URL('../../src/cli/main.ts', import.meta.url).pathname;
const END_PATIENCE_MS = 20_000;

/** `rotunda up` in a process of its own, which can be killed and started again. */
export class RunningUp {
  readonly #words: readonly string[];
  #child: ChildProcess;
  #ready: Promise<boolean>;
  #isBetween = false;

  constructor(words: readonly string[]) {
    this.#words = words;
    [this.#child, this.#ready] = start(words);
  }

  /** False: it ended, or the time did. */
  async isReady(withinMs: number): Promise<boolean> {
    const late = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => late.resolve(false), withinMs);
    return Promise.race([this.#ready, late.promise]).finally(() => clearTimeout(timer));
  }

  /** By itself: what is killed to be started again has not. */
  get hasEnded(): boolean {
    return !this.#isBetween && this.#isOver;
  }

  get #isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** It and every process that it has started. */
  all(): number[] {
    return [this.pid, ...descendants(this.pid)];
  }

  /** Kills all of it at once, and starts it again when it is gone: before, its folder is still held. */
  async killAndStart(): Promise<void> {
    const gone = new Promise<void>(resolve => this.#child.once('exit', () => resolve()));
    const isThere = !this.#isOver;
    this.#isBetween = true;
    for (const pid of this.all()) signal(pid, 'SIGKILL');
    if (isThere) await gone;
    [this.#child, this.#ready] = start(this.#words);
    this.#isBetween = false;
  }

  async end(): Promise<void> {
    const below = descendants(this.pid).map(pid => ({ pid, start: startOf(pid) }));
    for (const pid of this.all()) signal(pid, 'SIGCONT');
    const ended = new Promise<void>(resolve => this.#child.once('exit', () => resolve()));
    if (!this.hasEnded) {
      this.#child.kill('SIGTERM');
      await Promise.race([ended, new Promise(resolve => setTimeout(resolve, END_PATIENCE_MS))]);
    }
    // By now a number may be somebody else's.
    const left = below.filter(({ pid, start }) => start !== undefined && startOf(pid) === start);
    for (const pid of [...left.map(({ pid }) => pid), ...this.all()]) signal(pid, 'SIGKILL');
  }
}

function start(words: readonly string[]): [ChildProcess, Promise<boolean>] {
  const child = spawn(process.execPath, [MAIN, ...words], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ready = new Promise<boolean>(resolve => {
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      text = (text + part).slice(-10_000);
      if (text.includes('ready:')) resolve(true);
    });
    child.once('exit', () => resolve(false));
  });
  return [child, ready];
}
