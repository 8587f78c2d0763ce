import { load } from 'js-yaml';
import { splitKernelArguments } from '../machine-config-api/kernel-arguments.ts';
import { commandOutput, type RunCommand } from './command.ts';
import { offerExtensions } from './extensions-image.ts';
import { finalizeFailure, flushEachObject } from './ostree.ts';
import { type BootedOs, HostError, type HostFiles, type HostOs } from './port.ts';

/** Staging a deployment downloads and writes a whole operating system. */
const STAGE_TIMEOUT_MS = 60 * 60_000;
const TRANSPORT = 'ostree-unverified-registry:';

/** An operating system that rpm-ostree deploys (spec 60, 8.8 and 8.9). */
export function rpmOstree(run: RunCommand, files: HostFiles): HostOs {
  const rpmOstreeRun = (...args: string[]) =>
    commandOutput(run, ['rpm-ostree', ...args], {
      timeoutMs: STAGE_TIMEOUT_MS,
      env: { RPMOSTREE_CLIENT_ID: 'machine-config-operator' },
    });
  return {
    tool: 'rpm-ostree',
    booted: async () => bootedOf(await rpmOstreeRun('status', '--json')),
    async rebase(image) {
      const { hasContainerFeature, version } = rpmOstreeVersion(await rpmOstreeRun('--version'));
      if (!hasContainerFeature)
        throw new HostError(
          'unsupported',
          `rpm-ostree ${version} cannot deploy container images; expected the feature "container"`,
        );
      await rpmOstreeRun('rebase', '--experimental', `${TRANSPORT}${image}`);
    },
    kernelArguments: async () => splitKernelArguments([await rpmOstreeRun('kargs')]),
    async changeKernelArguments(change) {
      // What is gone already is no error: the change may have been made before an interruption.
      await rpmOstreeRun('kargs', ...change.map(argument => argument.replace(/^--delete=/, '--delete-if-present=')));
    },
    async changePackages(change) {
      await rpmOstreeRun(...change);
    },
    async discardStaged() {
      await rpmOstreeRun('cleanup', '-p');
    },
    async removeRollback() {
      await rpmOstreeRun('cleanup', '-r');
    },
    offerExtensions: image => offerExtensions(run, files, image),
    finalizeFailure: () => finalizeFailure(run),
    flushEachObject: () => flushEachObject(run),
  };
}

interface Deployment {
  booted?: boolean;
  'container-image-reference'?: string;
  'base-checksum'?: string;
  checksum?: string;
  version?: string;
  'requested-packages'?: string[];
  'requested-local-packages'?: string[];
  'requested-local-fileoverride-packages'?: string[];
  'requested-base-removals'?: string[];
  'requested-base-local-replacements'?: string[];
}

/** The booted deployment in what `rpm-ostree status --json` prints. */
export function bootedOf(statusJson: string): BootedOs {
  const { deployments = [] } = JSON.parse(statusJson) as { deployments?: Deployment[] };
  const booted = deployments.find(deployment => deployment.booted === true);
  if (booted === undefined) throw new HostError('command', 'rpm-ostree status names no booted deployment');
  return {
    image: (booted['container-image-reference'] ?? '').replace(/^ostree-[a-z-]+:(?:docker:\/\/)?/, ''),
    commit: booted['base-checksum'] ?? booted.checksum ?? '',
    version: booted.version ?? '',
    layeredPackages: booted['requested-packages'] ?? [],
    removedPackages: booted['requested-base-removals'] ?? [],
    localPackages: [
      ...(booted['requested-local-packages'] ?? []),
      ...(booted['requested-local-fileoverride-packages'] ?? []),
      ...(booted['requested-base-local-replacements'] ?? []),
    ],
  };
}

/** What `rpm-ostree --version` says. */
export function rpmOstreeVersion(text: string): { readonly version: string; readonly hasContainerFeature: boolean } {
  const about = (load(text) as { 'rpm-ostree'?: { Version?: string | number; Features?: string[] } } | undefined)?.[
    'rpm-ostree'
  ];
  return {
    version: String(about?.Version ?? ''),
    hasContainerFeature: about?.Features?.includes('container') ?? false,
  };
}
