import { randomUUID } from 'node:crypto';
import { accountsOnDisk } from './accounts-on-disk.ts';
import { type Host, HostError, type HostFiles, type HostOs, type HostPackages, type HostServices } from './port.ts';
import { sessionsOnDisk } from './sessions-on-disk.ts';
import { unitsOnDisk } from './units-on-disk.ts';

export type ServiceVerb = 'start' | 'stop' | 'restart' | 'reload' | 'daemon-reload';

export interface HostHooks {
  /** Something was asked of a service; what it throws is how it failed. */
  onService?(verb: ServiceVerb, unit: string): Promise<void> | void;
  /** A reboot was asked for. Without it the host is booted anew at once: it only gets another boot id. */
  onReboot?(rationale: string): Promise<void> | void;
}

export interface HostOnDiskOptions extends HostHooks {
  readonly files: HostFiles;
  readonly os?: HostOs | undefined;
  readonly packages?: HostPackages | undefined;
  /** Told of every service verb and reboot. */
  record?(line: string): Promise<void> | void;
}

const BOOT_ID = '/run/rotunda/boot-id';
const ACTIVE_UNITS = '/run/rotunda/active-units.json';
const LARGEST_STATE_BYTES = 1024 * 1024;
/** What ships with the image lies below /usr; nobody else claims a file. */
const NO_PACKAGES: HostPackages = { owns: async () => false };

/** A host without anything running: what systemd, logind and the user database keep in files is all there is. */
export function hostOnDisk(options: HostOnDiskOptions): Host {
  const { files } = options;
  return {
    files,
    services: servicesOnDisk(options),
    os: options.os,
    accounts: accountsOnDisk(files),
    sessions: sessionsOnDisk(files),
    packages: 'packages' in options ? options.packages : NO_PACKAGES,
    async updateCaTrust() {
      await options.record?.('update-ca-trust');
    },
    async bootId() {
      const stored = await files.read(BOOT_ID, LARGEST_STATE_BYTES);
      return stored?.toString('utf8').trim() ?? newBootId(files);
    },
    async reboot(rationale) {
      await options.record?.(`reboot: ${rationale}`);
      if (options.onReboot !== undefined) await options.onReboot(rationale);
      else await newBootId(files);
    },
  };
}

async function newBootId(files: HostFiles): Promise<string> {
  const id = randomUUID();
  await files.write(BOOT_ID, Buffer.from(`${id}\n`));
  return id;
}

function servicesOnDisk({ files, onService, record }: HostOnDiskOptions): HostServices {
  const units = unitsOnDisk(files);

  async function states(): Promise<Record<string, boolean>> {
    const text = await files.read(ACTIVE_UNITS, LARGEST_STATE_BYTES);
    return text === undefined ? {} : (JSON.parse(text.toString('utf8')) as Record<string, boolean>);
  }

  async function act(verb: ServiceVerb, unit: string): Promise<void> {
    if (verb !== 'stop' && verb !== 'daemon-reload') {
      const enablement = await units.isEnabled(unit);
      if (enablement === 'masked' || enablement === 'not-found')
        throw new HostError('command', `systemctl ${verb} ${unit}: unit is ${enablement}`);
    }
    await record?.(unit === '' ? verb : `${verb} ${unit}`);
    await onService?.(verb, unit);
    if (verb === 'daemon-reload' || verb === 'reload') return;
    await files.write(ACTIVE_UNITS, Buffer.from(JSON.stringify({ ...(await states()), [unit]: verb !== 'stop' })));
  }

  return {
    ...units,
    daemonReload: () => act('daemon-reload', ''),
    start: unit => act('start', unit),
    stop: unit => act('stop', unit),
    restart: unit => act('restart', unit),
    reload: unit => act('reload', unit),
    // What was enabled when the machine came up runs unless somebody stopped it.
    isActive: async unit => (await states())[unit] ?? (await units.isEnabled(unit)) === 'enabled',
  };
}
