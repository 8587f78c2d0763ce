import { splitKernelArguments } from '../machine-config-api/kernel-arguments.ts';
import { commandOutput, type RunCommand } from './command.ts';
import { finalizeFailure, flushEachObject } from './ostree.ts';
import { type BootedOs, HostError, type HostFiles, type HostOs } from './port.ts';

const STAGE_TIMEOUT_MS = 60 * 60_000;

interface BootEntry {
  image?: { image?: { image?: string }; version?: string; imageDigest?: string };
  ostree?: { checksum?: string };
}

/** An operating system that bootc deploys: images only, kernel arguments and packages are part of the image. */
export function bootc(run: RunCommand, files: HostFiles): HostOs {
  const output = (...argv: string[]) => commandOutput(run, argv, { timeoutMs: STAGE_TIMEOUT_MS });
  const status = async () =>
    (
      JSON.parse(await output('bootc', 'status', '--json')) as {
        status?: { booted?: BootEntry; staged?: BootEntry | null };
      }
    ).status ?? {};
  const unsupported = async (): Promise<never> => {
    throw new HostError('unsupported', 'bootc takes kernel arguments and packages only as part of an image');
  };
  return {
    tool: 'bootc',
    async booted(): Promise<BootedOs> {
      const { booted } = await status();
      return {
        image: booted?.image?.image?.image ?? '',
        commit: booted?.ostree?.checksum ?? '',
        version: booted?.image?.version ?? '',
        layeredPackages: [],
      };
    },
    async rebase(image) {
      await output('bootc', 'switch', '--transport', 'registry', '--', image);
    },
    kernelArguments: async () => splitKernelArguments([(await files.read('/proc/cmdline'))?.toString('utf8') ?? '']),
    changeKernelArguments: unsupported,
    changePackages: unsupported,
    async discardStaged() {
      // A staged deployment is always the first one.
      if ((await status()).staged) await output('ostree', 'admin', 'undeploy', '0');
    },
    // bootc keeps one rollback deployment and replaces it by itself.
    async removeRollback() {},
    finalizeFailure: () => finalizeFailure(run),
    flushEachObject: () => flushEachObject(run),
  };
}
