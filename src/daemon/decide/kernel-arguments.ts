import { splitKernelArguments } from '../../machine-config-api/kernel-arguments.ts';

/** Why a machine does not run with the kernel arguments of its config, undefined if it does (spec 60, 11.1.2). */
export function kernelArgumentsProblem(wanted: readonly string[], present: readonly string[]): string | undefined {
  const missing = missingKernelArguments(wanted, present);
  return missing.length === 0 ? undefined : `missing expected kernel arguments: [${missing.join(' ')}]`;
}

/** Which of the wanted arguments a machine does not have, in their order; both sides are split alike (D-24). More is fine. */
export function missingKernelArguments(wanted: readonly string[], present: readonly string[]): string[] {
  const found = new Set(splitKernelArguments(present));
  return splitKernelArguments(wanted).filter(argument => !found.has(argument));
}
