import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import type { ProgramOptions } from '../../local/programs.ts';
import {
  BUILD_COMMAND,
  type BuiltProgram,
  buildPrograms,
  builtProgramsDirectory,
  findGo,
  KUBERNETES_VERSION,
  moduleDirectory,
} from '../../local/real/built-programs.ts';
import { missingPrograms } from '../../local/real/required-programs.ts';
import { Progress } from '../up/progress.ts';
import { UsageError } from '../usage-error.ts';

export interface RealProgramFlags {
  readonly binaries?: string | undefined;
  readonly build?: boolean | undefined;
}

export function withRealProgramFlags(command: Command): Command {
  return command
    .option(
      '--binaries <folder>',
      `where real programs are, before the folder of \`${BUILD_COMMAND}\` and PATH (default: KUBEBUILDER_ASSETS)`,
    )
    .option('--build', 'build programs of a real control plane that are missing, with Go, without asking');
}

/** Where real programs are looked for before PATH. */
export function binariesFrom({ binaries }: RealProgramFlags): string[] {
  return [binaries ?? process.env.KUBEBUILDER_ASSETS ?? '', builtProgramsDirectory()].filter(Boolean);
}

/** The programs of a real control plane. What is missing is built, where somebody wants that; else the error says what to run. */
export async function realPrograms(flags: RealProgramFlags): Promise<ProgramOptions> {
  const options: ProgramOptions = { binaries: binariesFrom(flags), useRealBinaries: true };
  const missing = missingPrograms(options);
  if (missing.length === 0) return options;
  const obstacle = buildObstacle();
  if (obstacle !== undefined) throw new UsageError(`${wantedText(missing, options)} ${obstacle}`);
  if (!flags.build && !(await isWanted(missing))) {
    const command = `in ${checkout()} (some minutes, once, into ${builtProgramsDirectory()})`;
    throw new UsageError(
      `${wantedText(missing, options)} Run \`${BUILD_COMMAND}\` ${command}, or say --build, or name a folder that has them with --binaries`,
    );
  }
  await build(missing);
  const still = missingPrograms(options);
  if (still.length > 0) throw new Error(`built, and still not found: ${still.join(', ')}`);
  return options;
}

function wantedText(missing: readonly string[], { binaries = [] }: ProgramOptions): string {
  return `a real control plane needs ${missing.join(', ')}: neither in ${[binaries].flat().join(' or ')} nor on the PATH.`;
}

/** Why nothing can be built here; undefined when it can. */
function buildObstacle(): string | undefined {
  const otherwise = 'or name a folder that has them with --binaries';
  if (moduleDirectory() === undefined) {
    return `They are built in a checkout of Rotunda: run \`npm ci && ${BUILD_COMMAND}\` there (needs Go), ${otherwise}`;
  }
  if (findGo() !== undefined) return undefined;
  return `They are built with Go, which is not on the PATH: install it, run \`${BUILD_COMMAND}\` in ${checkout()}, ${otherwise}`;
}

function checkout(): string {
  return (moduleDirectory() ?? '').replace(/\/test\/cluster\/?$/, '');
}

/** Only somebody at a terminal can be asked. */
async function isWanted(missing: readonly string[]): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const question = `a real control plane needs ${missing.join(', ')}. Build Kubernetes ${KUBERNETES_VERSION} and etcd now? It takes some minutes, once. [y/N] `;
    return /^y(?:es)?$/i.test((await prompt.question(question)).trim());
  } finally {
    prompt.close();
  }
}

async function build(missing: readonly BuiltProgram[]): Promise<void> {
  const progress = new Progress(process.stderr);
  progress.say(`building ${missing.join(', ')} into ${builtProgramsDirectory()}`);
  const parts = new Map(missing.map(name => [name, { name, ready: false, text: 'waiting' }]));
  const onProgress = (name: BuiltProgram, text: string, ready: boolean) => {
    parts.set(name, { name, ready, text });
    progress.show([...parts.values()]);
  };
  await buildPrograms(missing, { onProgress });
  progress.end();
}
