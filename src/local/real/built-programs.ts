import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { findExecutable, searchPath } from '../programs.ts';

/** What is built; `go.mod` in the folder of the module pins the same. */
export const KUBERNETES_VERSION = 'v1.36.3';

/** The programs of a control plane, and the Go package each is built from. */
const PACKAGES = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
  kubelet: 'k8s.io/kubernetes/cmd/kubelet',
  kubeadm: 'k8s.io/kubernetes/cmd/kubeadm',
} as const;

export type BuiltProgram = keyof typeof PACKAGES;
export const BUILT_PROGRAMS = Object.keys(PACKAGES) as BuiltProgram[];
/** What a control plane runs; kubeadm only makes its files. */
export const RUNNING_PROGRAMS = BUILT_PROGRAMS.filter(program => program !== 'kubeadm');

/** What to run in a checkout to have them. */
export const BUILD_COMMAND = 'npm run cluster:build';
/** Building one program from nothing takes two to seven minutes on two cores; later ones share most of it. */
const BUILD_TIMEOUT_MS = 30 * 60_000;
/** How much is said at most of what went wrong. */
const LAST_LINES = 20;
/** A name for every package would be too many lines. */
const TELL_EVERY = 100;

/** Where built programs are, for every checkout of this user. */
export function builtProgramsDirectory(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'rotunda', 'cluster', KUBERNETES_VERSION);
}

/** The Go module that they are built from: in a checkout; undefined in an installed program. */
export function moduleDirectory(): string | undefined {
  const directory = fileURLToPath(new URL('../../../test/cluster/', import.meta.url));
  return existsSync(join(directory, 'go.mod')) ? directory : undefined;
}

/** The `go` of this machine; undefined where there is none. */
export function findGo(): string | undefined {
  return findExecutable('go', searchPath());
}

/** How a build goes on; `done` says how it ended. */
export type BuildListener = (program: BuiltProgram, text: string, done: boolean) => void;

/** Builds what is not there yet, each program whole or not at all. Rejects with the last words of the compiler. */
export async function buildPrograms(
  programs: readonly BuiltProgram[],
  { onProgress, signal }: { readonly onProgress: BuildListener; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const [go, module] = [findGo(), moduleDirectory()];
  if (go === undefined) throw new Error('Go was not found on the PATH');
  if (module === undefined) throw new Error('there is nothing to build from: this is no checkout');
  const folder = builtProgramsDirectory();
  mkdirSync(folder, { recursive: true });
  for (const program of programs) {
    const path = join(folder, program);
    if (existsSync(path)) {
      onProgress(program, path, true);
      continue;
    }
    const started = performance.now();
    const half = join(folder, `.${program}.${process.pid}`);
    try {
      await compile(go, module, program, half, onProgress, signal);
      renameSync(half, path);
    } finally {
      rmSync(half, { force: true });
    }
    onProgress(program, `built in ${Math.round((performance.now() - started) / 1000)} s`, true);
  }
}

async function compile(
  go: string,
  module: string,
  program: BuiltProgram,
  output: string,
  onProgress: BuildListener,
  stop: AbortSignal | undefined,
): Promise<void> {
  onProgress(program, 'compiling', false);
  const timeout = AbortSignal.timeout(BUILD_TIMEOUT_MS);
  const child = spawn(go, ['build', '-v', '-trimpath', '-ldflags', versionFlags(), '-o', output, PACKAGES[program]], {
    cwd: module,
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'ignore', 'pipe'],
    signal: stop === undefined ? timeout : AbortSignal.any([stop, timeout]),
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  // With -v it names each package it compiles.
  let packages = 0;
  const last: string[] = [];
  createInterface({ input: child.stderr }).on('line', line => {
    last.push(line);
    if (last.length > LAST_LINES) last.shift();
    if (++packages % TELL_EVERY === 0) onProgress(program, `${packages} packages compiled`, false);
  });
  const code = await ended;
  if (code !== 0) throw new Error(`go build of ${program} failed: ${last.join('\n')}`);
}

/** A binary from a module does not know its version; kubectl and the discovery tests read it. */
function versionFlags(): string {
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(KUBERNETES_VERSION) ?? [];
  const variable = 'k8s.io/component-base/version';
  const flags = [`gitVersion=${KUBERNETES_VERSION}`, `gitMajor=${major}`, `gitMinor=${minor}`];
  return ['-s', '-w', ...flags.map(flag => `-X ${variable}.${flag}`)].join(' ');
}
