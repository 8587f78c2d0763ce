import { readOperatingSystem } from '../../host/os-release.ts';
import type { Host } from '../../host/port.ts';
import { isSpec2 } from '../../machine-config-api/ignition/read.ts';
import type { IgnitionConfig, IgnitionUnit } from '../../machine-config-api/ignition/types.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { readConfig } from '../../machine-config-api/reconciliation.ts';
import { isBootedInto } from '../apply/os.ts';
import { sshKeyFile } from '../apply/ssh-keys.ts';
import type { StoredState } from '../apply/stored.ts';
import { driftPaths } from '../decide/disk-paths.ts';
import { validateDisk } from '../decide/disk-validation.ts';
import { kernelArgumentsProblem } from '../decide/kernel-arguments.ts';
import type { DriftSubject } from './drift-monitor.ts';

const SYSTEMD = '/etc/systemd/system';
const CORE_USER = 'core';
const DEFAULT_TARGET = 'multi-user.target';

/**
 * Why the machine is not what a config says, undefined if it is (spec 60, 11.1): booted image and kernel arguments where the operating
 * system is an image, then files, units and keys.
 */
export async function machineProblem(host: Host, { config, image }: StoredState): Promise<string | undefined> {
  const { spec, ignition } = readConfig(config, { isStored: true });
  return (
    (await bootedProblem(host, image === '' ? (spec.osImageURL ?? '') : image)) ??
    (await argumentsProblem(host, spec.kernelArguments ?? [])) ??
    diskProblem(host, config, ignition)
  );
}

/** The same without the operating system, which no file that changes under us can change. */
async function diskProblem(host: Host, config: MachineConfig, ignition: IgnitionConfig): Promise<string | undefined> {
  const comparesCertificates = isSpec2(config.spec?.config);
  return (await validateDisk(ignition, host, { sshKeysPath: await keysPath(host), comparesCertificates }))?.message;
}

/** Why the machine does not run that image; machines that are none run what they run. */
export async function bootedProblem({ os }: Host, wanted: string): Promise<string | undefined> {
  if (os === undefined || wanted === '') return undefined;
  const { image, commit } = await os.booted();
  // Which commit an image holds only its registry could say; the text alone counts, as in later releases.
  const facts = { isCoreOSVariant: true, targetImage: wanted, bootedImage: image, bootedCommit: commit };
  return isBootedInto({ ...facts, targetCommit: undefined })
    ? undefined
    : `expected target osImageURL "${wanted}", have "${image}" ("${commit}")`;
}

async function argumentsProblem({ os }: Host, wanted: readonly string[]): Promise<string | undefined> {
  if (os === undefined || wanted.length === 0) return undefined;
  return kernelArgumentsProblem(wanted, await os.kernelArguments());
}

/** What the drift monitor watches of a config, and how it compares. */
export async function driftSubject(host: Host, config: MachineConfig): Promise<DriftSubject> {
  const { name, ignition } = readConfig(config, { isStored: true });
  const paths = [...driftPaths(ignition, await keysPath(host)), ...enablementPaths(ignition.systemd?.units ?? [])];
  return { config: name, paths: [...new Set(paths)].sort(), validate: () => diskProblem(host, config, ignition) };
}

/** Where the links are that make a unit enabled: in the folders its `[Install]` section names. */
function enablementPaths(units: readonly IgnitionUnit[]): string[] {
  return units
    .filter(({ enabled }) => enabled !== undefined)
    .flatMap(({ name, contents = '' }) => {
      const wanted = [...contents.matchAll(/^\s*(WantedBy|RequiredBy)\s*=\s*(.*)$/gm)].flatMap(([, key, targets]) =>
        (targets ?? '')
          .split(/\s+/)
          .filter(target => /^[\w@.:-]+$/.test(target))
          .map(target => `${SYSTEMD}/${target}.${key === 'WantedBy' ? 'wants' : 'requires'}/${name}`),
      );
      return wanted.length > 0 ? wanted : [`${SYSTEMD}/${DEFAULT_TARGET}.wants/${name}`];
    });
}

/** The file with the keys of the config; undefined where the host has nobody to log in with them. */
async function keysPath({ accounts, files }: Host): Promise<string | undefined> {
  const isThere = (await accounts.uid(CORE_USER)) !== undefined;
  return isThere ? sshKeyFile(await readOperatingSystem(files)) : undefined;
}
