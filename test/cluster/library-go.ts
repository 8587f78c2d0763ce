import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RotationUnit } from '../../src/certrotation/config.ts';
import type { Chain } from '../../src/kube-apiserver/chains.ts';
import { run } from '../interop/program.ts';

const SOURCE = join(import.meta.dirname, 'library-go');
/** Building it from nothing takes some minutes on two cores. */
const BUILD_TIMEOUT_MS = 30 * 60_000;
const BUILD_OUTPUT_LIMIT = 1 << 24;

/** What a pass of library-go's controllers did. */
export interface Report {
  /** Requests that change something: method and path. */
  readonly writes: readonly string[];
  /** Reason and message. */
  readonly events: readonly string[];
  readonly errors: readonly string[];
}

/** Where the program with library-go's rotation controllers is; undefined if it was not built. */
export function findLibraryGo(): string | undefined {
  return existsSync(programPath()) ? programPath() : undefined;
}

/** Builds the program into the cache, unless it is there. */
export async function buildLibraryGo(say: (line: string) => void): Promise<void> {
  const program = programPath();
  if (!existsSync(program)) {
    mkdirSync(join(program, '..'), { recursive: true });
    const half = `${program}.${process.pid}`;
    await promisify(execFile)('go', ['build', '-trimpath', '-o', half, '.'], {
      cwd: SOURCE,
      env: { ...process.env, CGO_ENABLED: '0' },
      timeout: BUILD_TIMEOUT_MS,
      maxBuffer: BUILD_OUTPUT_LIMIT,
    });
    renameSync(half, program);
  }
  say(`library-go: ${program}`);
}

/** One pass of library-go's controllers over the chains, the same that our units are made from. */
export async function passOfLibraryGo(
  program: string,
  kubeconfig: string,
  chains: readonly Chain[],
  units: readonly RotationUnit[],
  hostnames: (chain: Chain) => readonly string[],
): Promise<Report> {
  const input = {
    chains: chains.map((chain, index) => described(chain, units[index] as RotationUnit, hostnames(chain))),
  };
  return JSON.parse(await run(program, ['--kubeconfig', kubeconfig], { input: JSON.stringify(input) })) as Report;
}

function described({ controller, target }: Chain, unit: RotationUnit, hostnames: readonly string[]): object {
  const lifetime = ({ namespace, name, validityMs, refreshMs }: RotationUnit['signer']) => ({
    namespace,
    name,
    validityMs,
    refreshMs,
  });
  const { creator } = target;
  return {
    controller,
    component: unit.signer.additionalAnnotations?.jiraComponent,
    signer: lifetime(unit.signer),
    bundle: { namespace: unit.bundle.namespace, name: unit.bundle.name },
    target: {
      ...lifetime(unit.target),
      ...(creator.kind === 'client' ? { user: creator.user.name, groups: creator.user.groups ?? [] } : { hostnames }),
    },
  };
}

/** Other sources, another program. */
function programPath(): string {
  const digest = createHash('sha256');
  for (const file of ['go.mod', 'go.sum', 'main.go']) digest.update(readFileSync(join(SOURCE, file)));
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  return join(cache, 'rotunda', 'library-go', digest.digest('hex').slice(0, 16), 'rotation');
}
