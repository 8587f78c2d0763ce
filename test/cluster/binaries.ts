import { execFile } from 'node:child_process';
import { accessSync, constants, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The programs of a control plane, and the Go package each is built from. */
const PACKAGES = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
  kubelet: 'k8s.io/kubernetes/cmd/kubelet',
} as const;

export type Program = keyof typeof PACKAGES;
export const PROGRAMS = Object.keys(PACKAGES) as Program[];

/** Building one program from nothing takes two to seven minutes on two cores; later ones share most of it. */
const BUILD_TIMEOUT_MS = 30 * 60_000;
const BUILD_OUTPUT_LIMIT = 1 << 24;

export type Binaries = Readonly<Record<Program, string>>;

/** The programs of a real control plane if they are all here, else why not. Builds nothing. */
export function findBinaries(programs: readonly Program[] = PROGRAMS): Binaries | { missing: string } {
  const found = programs.map(program => [program, find(program)] as const);
  const missing = found.filter(([, path]) => path === undefined).map(([program]) => program);
  if (missing.length > 0) {
    return { missing: `no ${missing.join(', ')} in KUBEBUILDER_ASSETS, on the PATH or built by npm run cluster:build` };
  }
  return Object.fromEntries(found) as Binaries;
}

/** Builds what is missing into the cache, each program whole or not at all. */
export async function buildBinaries(
  say: (line: string) => void,
  programs: readonly Program[] = PROGRAMS,
): Promise<void> {
  mkdirSync(cacheDirectory(), { recursive: true });
  for (const program of programs) {
    const here = find(program);
    if (here !== undefined) {
      say(`${program}: ${here}`);
      continue;
    }
    const started = Date.now();
    const half = join(cacheDirectory(), `.${program}.${process.pid}`);
    await run('go', ['build', '-trimpath', '-ldflags', versionFlags(), '-o', half, PACKAGES[program]], {
      cwd: import.meta.dirname,
      env: { ...process.env, CGO_ENABLED: '0' },
      timeout: BUILD_TIMEOUT_MS,
      maxBuffer: BUILD_OUTPUT_LIMIT,
    });
    renameSync(half, join(cacheDirectory(), program));
    say(`${program}: built in ${Math.round((Date.now() - started) / 1000)} s`);
  }
}

/** Version of Kubernetes that `go.mod` pins, such as `v1.36.3`. */
export function kubernetesVersion(): string {
  const [, version] =
    /k8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(import.meta.dirname, 'go.mod'), 'utf8')) ?? [];
  if (version === undefined) throw new Error('go.mod does not require k8s.io/kubernetes');
  return version;
}

function find(program: Program): string | undefined {
  const assets = process.env.KUBEBUILDER_ASSETS;
  const onPath = (process.env.PATH ?? '').split(delimiter);
  // The etcd of a distribution is older than what this kube-apiserver wants; our own is looked for first.
  return [...(assets === undefined ? [] : [assets]), cacheDirectory(), ...(program === 'etcd' ? [] : onPath)]
    .filter(directory => directory !== '')
    .map(directory => join(directory, program))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function cacheDirectory(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'rotunda', 'cluster', kubernetesVersion());
}

/** A binary from a module does not know its version; kubectl and the discovery tests read it. */
function versionFlags(): string {
  const version = kubernetesVersion();
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  const variable = 'k8s.io/component-base/version';
  return `-s -w -X ${variable}.gitVersion=${version} -X ${variable}.gitMajor=${major} -X ${variable}.gitMinor=${minor}`;
}
