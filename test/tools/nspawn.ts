import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { installPackages } from './debian.ts';
import { PATIENCE_MS } from './eventually.ts';

/** Files that machines of a test share, as they were made: the upper ones hide the lower ones. Topmost first. */
export type Layers = readonly string[];

export interface BootOptions {
  readonly layers: Layers;
  /** What of this machine is seen inside: path there, path here. */
  readonly readOnly?: Readonly<Record<string, string>>;
  /** Further arguments of systemd-nspawn. */
  readonly settings?: readonly string[];
  /** What else systemd-nspawn finds in its environment. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** How a command inside ended, and what it printed. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const PREFIX = 'rotunda-nspawn';
const LAUNCHER = new URL('./nspawn.sh', import.meta.url).pathname;
/** With which systemd-nspawn ends when the machine reboots. */
const REBOOTED = 133;
const COMMAND_OUTPUT_LIMIT = 1 << 24;
const LONGEST_CONSOLE = 1 << 16;

/** Why no machines can be booted here, undefined if they can. Installs the programs where that is possible. */
export function nspawnProblem(): string | undefined {
  if (process.platform !== 'linux') return 'systemd-nspawn needs Linux';
  if (process.getuid?.() !== 0) return 'systemd-nspawn needs root';
  if (['systemd-nspawn', 'mmdebstrap'].some(program => spawnSync(program, ['--version']).error !== undefined)) {
    try {
      installPackages('systemd-container', 'mmdebstrap');
    } catch (error) {
      return `systemd-nspawn and mmdebstrap are not here and could not be installed: ${(error as Error).message}`;
    }
  }
  const dir = mkdtempSync(join(tmpdir(), `${PREFIX}-${process.pid}-`));
  try {
    for (const name of ['lower', 'upper', 'work', 'root']) mkdirSync(join(dir, name));
    const mount = ['mount', '-t', 'overlay', '-o', 'lowerdir=lower,upperdir=upper,workdir=work', 'overlay', 'root'];
    const { status, stderr } = spawnSync('unshare', ['--mount', ...mount], { cwd: dir, encoding: 'utf8' });
    return status === 0 ? undefined : `overlayfs cannot be mounted here: ${stderr.trim()}`;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/**
 * Machines with a booted systemd, all of them gone when this process is, however it ends: every one is a process namespace with
 * mounts of its own that dies with us. They share our network.
 */
export class MachineRoom {
  readonly dir: string;
  readonly base: string;
  readonly #machines: Machine[] = [];

  /** `base` is the root directory of an operating system; nothing is written to it. */
  constructor(base: string) {
    removeStale();
    this.base = base;
    this.dir = mkdtempSync(join(tmpdir(), `${PREFIX}-${process.pid}-`));
  }

  /** A directory for the files of a layer. */
  layer(name: string): string {
    const dir = join(this.dir, 'layers', name);
    mkdirSync(dir, { recursive: true });
    return dir;
  }

  /** Runs a program of this machine in an overlay of the layers, whose path it gets as its last argument, and keeps what it writes. */
  async layerBy(name: string, layers: Layers, argv: readonly string[]): Promise<string> {
    const dir = join(this.dir, 'made', name);
    for (const part of ['upper', 'work', 'root']) mkdirSync(join(dir, part), { recursive: true });
    const script =
      'mount -t overlay -o "$1" overlay "$2"; mount -t proc proc "$2/proc"; at=$2; shift 2; exec "$@" "$at"';
    const overlay = `lowerdir=${this.#lower(layers)},upperdir=${dir}/upper,workdir=${dir}/work`;
    const shell = ['--mount', '--propagation', 'private', 'sh', '-euc', script, 'sh', overlay, join(dir, 'root')];
    await output('unshare', [...shell, ...argv]);
    return join(dir, 'upper');
  }

  /** A machine that does not run yet. */
  machine(name: string, options: BootOptions): Machine {
    const made = new Machine(name, join(this.dir, 'machines', name), this.#lower(options.layers), options);
    this.#machines.push(made);
    return made;
  }

  /** Ends every machine and removes all there is of them. */
  async close(): Promise<void> {
    await Promise.all(this.#machines.map(machine => machine.stop()));
    rmSync(this.dir, { recursive: true, force: true });
  }

  #lower(layers: Layers): string {
    return [...layers, this.base].join(':');
  }
}

/** One machine: its disk stays while it is rebooted, and while it is off. */
export class Machine {
  readonly name: string;
  /** How often it has been booted. */
  boots = 0;
  /** What it printed last. */
  console = '';
  /** Set when it has ended otherwise than by a reboot. */
  ended: string | undefined;
  readonly #dir: string;
  readonly #lower: string;
  readonly #settings: readonly string[];
  readonly #environment: Readonly<Record<string, string>>;
  #process: ChildProcess | undefined;
  #isStopping = false;

  constructor(
    name: string,
    dir: string,
    lower: string,
    { readOnly = {}, settings = [], environment = {} }: BootOptions,
  ) {
    this.name = name;
    this.#dir = dir;
    this.#lower = lower;
    const binds = Object.entries(readOnly).map(([there, here]) => `--bind-ro=${here}:${there}`);
    this.#settings = [...binds, ...settings];
    this.#environment = environment;
    for (const part of ['upper', 'work', 'root']) mkdirSync(join(dir, part), { recursive: true });
    this.put('/etc/hostname', `${name}\n`);
    // Without one it would be a first boot, at which systemd enables and disables units by their presets.
    this.put('/etc/machine-id', `${randomUUID().replaceAll('-', '')}\n`);
  }

  /** Puts a file onto the disk of a machine that is off. */
  put(path: string, text: string, mode = 0o644): void {
    const at = join(this.#dir, 'upper', path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, text, { mode });
  }

  /** Switches it on; when it reboots it is started again. */
  start(): void {
    this.boots++;
    this.#isStopping = false;
    const launch = [LAUNCHER, this.#cgroup, this.#lower, this.#dir, `--machine=${this.name}`, ...this.#settings];
    // The first process dies with us, and the others with it.
    const started = spawn('setpriv', ['--pdeathsig', 'SIGKILL', 'sh', ...launch], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.#environment },
    });
    const keep = (part: Buffer) => {
      this.console = (this.console + part.toString()).slice(-LONGEST_CONSOLE);
    };
    started.stdout.on('data', keep);
    started.stderr.on('data', keep);
    started.once('exit', (code, signal) => {
      if (this.#isStopping) return;
      if (code === REBOOTED) this.start();
      else this.ended = `${this.name} ended with ${code ?? signal}: ${this.console.slice(-2000)}`;
    });
    this.#process = started;
  }

  /** Process 1 of the machine, as we know it; undefined while it is not there. */
  get leader(): number | undefined {
    const [nspawn] = childrenOf(this.#process?.pid);
    return childrenOf(nspawn).find(isFirst);
  }

  /** Its root directory, as we see it. */
  get root(): string {
    return `/proc/${this.#required}/root`;
  }

  /** Runs a program inside, as root; gives what it printed, whatever its exit code. */
  async run(argv: readonly string[], timeoutMs = PATIENCE_MS): Promise<Ran> {
    const enter = ['-t', String(this.#required), '-m', '-n', '-u', '-i', '-p', '-r', '-w', '--', ...argv];
    return new Promise((resolve, reject) => {
      const limits = { timeout: timeoutMs, maxBuffer: COMMAND_OUTPUT_LIMIT, killSignal: 'SIGKILL' as const };
      execFile('nsenter', enter, { ...limits, env: INSIDE }, (error, stdout, stderr) => {
        const code = error === null ? 0 : error.code;
        if (typeof code === 'number') resolve({ code, stdout, stderr });
        else reject(new Error(`${argv.join(' ')} on ${this.name}: ${error?.message}`));
      });
    });
  }

  /** The same for programs that must succeed. */
  async output(...argv: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(argv);
    if (code !== 0) throw new Error(`${argv.join(' ')} on ${this.name} ended with ${code}: ${stderr}${stdout}`);
    return stdout.trim();
  }

  /** Pulls the plug, and puts it in again. */
  async cutPower(): Promise<void> {
    await this.stop();
    this.start();
  }

  /** Switches it off at once; resolves when its last process has ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const running = this.#process;
    this.#process = undefined;
    if (running !== undefined && running.exitCode === null && running.signalCode === null) {
      const gone = once(running, 'exit');
      // The first process of the namespace: with it go all others, and our own child sees it off.
      const first = childrenOf(running.pid).find(isFirst);
      if (first === undefined) running.kill('SIGKILL');
      else process.kill(first, 'SIGKILL');
      await gone;
    }
    await removeCgroups(this.#cgroup);
  }

  get #cgroup(): string {
    return `${PREFIX}-${process.pid}-${this.name}`;
  }

  get #required(): number {
    const { leader } = this;
    if (leader === undefined) throw new Error(this.ended ?? `${this.name} is not running`);
    return leader;
  }
}

const INSIDE = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8' };

async function output(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, [...args], { timeout: PATIENCE_MS }, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${error.message}\n${stderr}`)),
    );
  });
}

function childrenOf(pid: number | undefined): number[] {
  if (pid === undefined) return [];
  return read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
}

/** Whether a process is the first one of a namespace. */
function isFirst(pid: number): boolean {
  return /^NSpid:.*\t1$/m.test(read(`/proc/${pid}/status`));
}

/** A file of a process, empty when it has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Removes what a run left that could not clean up: it was killed, and so its machines are dead. */
function removeStale(): void {
  const isStale = (path: string) => {
    const pid = Number(
      basename(path)
        .slice(PREFIX.length + 1)
        .split('-')[0],
    );
    return pid !== process.pid && !isAlive(pid);
  };
  for (const dir of globSync(join(tmpdir(), `${PREFIX}-*`)).filter(isStale))
    rmSync(dir, { recursive: true, force: true });
  for (const dir of cgroups(`${PREFIX}-*`).filter(isStale)) removeTree(dir);
}

/** Waits until the last process has ended, and removes their cgroups. */
async function removeCgroups(name: string): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; ; await setTimeout(20)) {
    const left = cgroups(name).filter(dir => !removeTree(dir));
    if (left.length === 0) return;
    if (performance.now() > end) throw new Error(`processes are left in ${left.join(', ')}`);
  }
}

/** Cgroups of that name in all hierarchies. They are where the one who made them was. */
function cgroups(name: string): string[] {
  return execFileSync('find', ['/sys/fs/cgroup', '-type', 'd', '-name', name, '-prune'], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);
}

/** Removes a cgroup and those below it; false while there are processes in one. */
function removeTree(dir: string): boolean {
  const below = execFileSync('find', [dir, '-depth', '-type', 'd'], { encoding: 'utf8' }).split('\n').filter(Boolean);
  try {
    for (const each of below) rmdirSync(each);
    return true;
  } catch {
    return false;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
