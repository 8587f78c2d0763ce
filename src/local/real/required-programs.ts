import { type ProgramOptions, Programs } from '../programs.ts';
import type { BuiltProgram } from './built-programs.ts';

const REQUIRED: readonly BuiltProgram[] = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

/** The programs of a real control plane that are not here. */
export function missingPrograms(options: ProgramOptions | undefined): BuiltProgram[] {
  const programs = new Programs(options);
  return REQUIRED.filter(name => programs.find(name)?.isStandIn !== false);
}

/** Throws, with their names, when programs of a real control plane are not here. */
export function requireRealPrograms(options: ProgramOptions | undefined): void {
  const missing = missingPrograms(options);
  if (missing.length > 0) throw new MissingPrograms(missing);
}

export class MissingPrograms extends Error {
  constructor(missing: readonly string[]) {
    super(`a real control plane needs ${missing.join(', ')}: neither on the PATH nor in a folder for binaries`);
    this.name = 'MissingPrograms';
  }
}
