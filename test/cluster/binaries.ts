import { findExecutable, searchPath } from '../../src/local/programs.ts';
import {
  BUILD_COMMAND,
  type BuiltProgram,
  builtProgramsDirectory,
  RUNNING_PROGRAMS,
} from '../../src/local/real/built-programs.ts';

export type Binaries = Readonly<Record<BuiltProgram, string>>;

/** The programs of a real control plane if they are all here, else why not. Builds nothing. */
export function findBinaries(programs: readonly BuiltProgram[] = RUNNING_PROGRAMS): Binaries | { missing: string } {
  const found = programs.map(program => [program, find(program)] as const);
  const missing = found.filter(([, path]) => path === undefined).map(([program]) => program);
  if (missing.length > 0) {
    return { missing: `no ${missing.join(', ')} in KUBEBUILDER_ASSETS, on the PATH or built by ${BUILD_COMMAND}` };
  }
  return Object.fromEntries(found) as Binaries;
}

function find(program: BuiltProgram): string | undefined {
  // The etcd of a distribution is older than what this kube-apiserver wants; our own is looked for first.
  const onPath = program === 'etcd' ? [] : searchPath();
  return findExecutable(
    program,
    [process.env.KUBEBUILDER_ASSETS ?? '', builtProgramsDirectory(), ...onPath].filter(Boolean),
  );
}
