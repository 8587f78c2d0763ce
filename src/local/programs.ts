import { accessSync, constants, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Container } from 'kubernetes-types/core/v1.d.ts';

/** How a program that a container names is run on this machine. */
export interface Program {
  /** What to execute; the container's own arguments follow. */
  readonly argv: readonly string[];
  /** It only stands in for the real program, which is not here. */
  readonly isStandIn: boolean;
}

export interface ProgramOptions {
  /** Runs this program with a command: `[...rotunda, 'installer', ...]`. */
  readonly rotunda?: readonly string[] | undefined;
  /** Where real binaries of the control plane may be, before `path`. */
  readonly binaries?: string | readonly string[] | undefined;
  /** A list of directories such as PATH. */
  readonly path?: string | undefined;
  /** False: always the stand-ins, also where real binaries are found. A list: real binaries of these programs only. */
  readonly useRealBinaries?: boolean | readonly string[] | undefined;
}

/** What is run and whether it is the real thing. */
export interface ResolvedCommand {
  readonly argv: readonly string[];
  readonly isStandIn: boolean;
}

/** Programs of upstream that are commands of ours: `cluster-etcd-operator installer` is `rotunda installer`. */
const OURS = ['rotunda', 'cluster-kube-apiserver-operator', 'cluster-etcd-operator'];
const MAIN = fileURLToPath(new URL('../cli/main.ts', import.meta.url));
/** Loaded before programs of ours, where they are sources. */
const PRELOADED = ['orphan-guard.ts', 'keep-compiled.ts'].map(name => new URL(name, import.meta.url));
/** OpenShift's wrapper around kube-apiserver tells of its end; here it only starts what comes after `--`. */
const WATCH_TERMINATION = '#!/bin/sh\nwhile [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n';
/** What stands in for a real program: a module of its own in a checkout, a command of the bundle otherwise. */
const STAND_INS = {
  'kube-apiserver': 'stand-in-apiserver',
  etcd: 'stand-in-etcd',
  'kube-controller-manager': 'stand-in-controller-manager',
  'kube-scheduler': 'stand-in-scheduler',
} as const;

/** The programs a container on a local node can run: ours, those of a control plane, and whatever the machine has. */
export class Programs {
  readonly #programs: ReadonlyMap<string, Program>;

  constructor({ rotunda, binaries = [], path, useRealBinaries = true }: ProgramOptions = {}) {
    const own = guarded(rotunda ?? [process.execPath, MAIN]);
    const programs = new Map<string, Program>(OURS.map(name => [name, { argv: own, isStandIn: false }]));
    const places = [...[binaries].flat(), ...searchPath(path)];
    const add = (name: string, standIn: string) => {
      const mayBeReal = typeof useRealBinaries === 'boolean' ? useRealBinaries : useRealBinaries.includes(name);
      const real = mayBeReal ? findExecutable(name, places) : undefined;
      if (real === undefined) programs.set(name, { argv: standInCommand(standIn, own), isStandIn: true });
      else programs.set(name, { argv: [real], isStandIn: false });
    };
    for (const [name, standIn] of Object.entries(STAND_INS)) add(name, standIn);
    // OpenShift's kube-apiserver, which alone understands `--openshift-config`.
    add('hyperkube', STAND_INS['kube-apiserver']);
    this.#programs = programs;
  }

  find(name: string): Program | undefined {
    return this.#programs.get(name);
  }

  /** What a container runs. Without a command its image says which program it is; undefined when that says nothing. */
  resolve(container: Pick<Container, 'image' | 'command' | 'args'>): ResolvedCommand | undefined {
    const { command = [], args = [], image = '' } = container;
    const [first = imageName(image), ...rest] = command;
    const words = [...rest, ...args];
    const program = this.#knows(first, words);
    if (program !== undefined) return { argv: [...program.argv, ...words], isStandIn: program.isStandIn };
    if (command.length === 0) return undefined;
    return { argv: [first, ...words], isStandIn: words.some(text => this.#mentionsStandIn(text)) };
  }

  /**
   * Writes a small script for each program into a directory for PATH, so that a container that is a shell script finds them
   * too. Each script replaces itself with the program: the process stays the same.
   */
  writeShims(directory: string): void {
    mkdirSync(directory, { recursive: true });
    for (const [name, { argv }] of this.#programs) {
      const path = join(directory, name);
      writeFileSync(path, `#!/bin/sh\nexec ${argv.map(quoted).join(' ')} "$@"\n`, { mode: 0o755 });
    }
    writeFileSync(join(directory, 'watch-termination'), WATCH_TERMINATION, { mode: 0o755 });
  }

  #knows(command: string, words: readonly string[]): Program | undefined {
    const name = basename(command);
    const isOpenShift = words.some(word => word.startsWith('--openshift-config'));
    return this.#programs.get(name === 'kube-apiserver' && isOpenShift ? 'hyperkube' : name);
  }

  #mentionsStandIn(script: string): boolean {
    for (const [name, { isStandIn }] of this.#programs) {
      if (isStandIn && new RegExp(`(?<![\\w./-])(?:exec\\s+)?${name}(?=\\s)`).test(script)) return true;
    }
    return false;
  }
}

/** A program of ours that runs on Node ends when its node is gone for good, and keeps what was compiled for the next one. */
function guarded(argv: readonly string[]): readonly string[] {
  const [command, ...rest] = argv;
  if (command !== process.execPath) return argv;
  return [command, ...PRELOADED.filter(url => existsSync(url)).flatMap(({ href }) => ['--import', href]), ...rest];
}

function standInCommand(name: string, own: readonly string[]): readonly string[] {
  const module = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  return existsSync(module) ? guarded([process.execPath, module]) : [...own, name];
}

/** `etcd` of `quay.io/openshift/etcd:v4.16@sha256:...`. */
export function imageName(image: string): string {
  return basename(image.split('@')[0] ?? '').split(':')[0] ?? '';
}

/** The directories of a list such as PATH. */
export function searchPath(path: string = process.env.PATH ?? ''): string[] {
  return path.split(delimiter).filter(Boolean);
}

/** The first executable of a name in these directories. */
export function findExecutable(name: string, places: readonly string[]): string | undefined {
  for (const place of places) {
    const path = join(place, name);
    try {
      accessSync(path, constants.X_OK);
      if (statSync(path).isFile()) return path;
    } catch {
      // Not here.
    }
  }
  return undefined;
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
