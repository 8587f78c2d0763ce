import { type ProgramOptions, Programs } from '../programs.ts';

const REQUIRED = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

/** Throws, with their names, when programs of a real control plane are not here. */
export function requireRealPrograms(options: ProgramOptions | undefined): void {
  const programs = new Programs(options);
  const missing = REQUIRED.filter(name => programs.find(name)?.isStandIn !== false);
  if (missing.length === 0) return;
  throw new MissingPrograms(missing);
}

export class MissingPrograms extends Error {
  constructor(missing: readonly string[]) {
    super(`a real control plane needs ${missing.join(', ')}: neither on the PATH nor in the folder for binaries`);
    this.name = 'MissingPrograms';
  }
}
