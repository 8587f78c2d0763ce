import { posix } from 'node:path';
import { isMask } from './link-target.ts';
import { HostError, type HostFiles, type UnitEnablement } from './port.ts';

/** Enabling and disabling of units by their links, as `systemctl --root` does it without a running systemd. */
export interface UnitsOnDisk {
  isEnabled(unit: string): Promise<UnitEnablement>;
  enable(units: readonly string[]): Promise<void>;
  disable(units: readonly string[]): Promise<void>;
  preset(unit: string): Promise<void>;
}

const UNIT_DIRECTORY = '/etc/systemd/system';
const UNIT_PATH = [
  UNIT_DIRECTORY,
  '/run/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
];
const PRESET_PATH = ['/etc/systemd/system-preset', '/run/systemd/system-preset', '/usr/lib/systemd/system-preset'];
const LARGEST_UNIT_BYTES = 1024 * 1024;
/** How far `Also=` is followed. */
const MOST_UNITS = 64;
const UNIT_NAME = /^[A-Za-z0-9:_.\\@-]{1,255}$/;

interface Install {
  readonly links: readonly string[];
  readonly also: readonly string[];
}

type UnitFile =
  | { readonly kind: 'masked' }
  | { readonly kind: 'file'; readonly path: string; readonly install: Install };

export function unitsOnDisk(files: HostFiles): UnitsOnDisk {
  async function find(unit: string): Promise<UnitFile | undefined> {
    if (!UNIT_NAME.test(unit)) throw new HostError('command', `${JSON.stringify(unit)} is no name of a unit`);
    for (const name of [unit, templateOf(unit)]) {
      for (const directory of UNIT_PATH) {
        const path = posix.join(directory, name);
        if (await isMask(files, path)) return { kind: 'masked' };
        const text = await files.read(path, LARGEST_UNIT_BYTES);
        if (text !== undefined) return { kind: 'file', path, install: installOf(text.toString('utf8'), unit) };
      }
    }
    return undefined;
  }

  async function require(unit: string): Promise<Extract<UnitFile, { kind: 'file' }>> {
    const found = await find(unit);
    if (found === undefined) throw new HostError('command', `unit file ${unit} does not exist`);
    if (found.kind === 'masked') throw new HostError('command', `unit file ${unit} is masked`);
    return found;
  }

  async function enableOne(unit: string, done: Set<string>): Promise<void> {
    if (done.has(unit) || done.size >= MOST_UNITS) return;
    done.add(unit);
    const { path, install } = await require(unit);
    for (const link of install.links) {
      if ((await files.readLink(link)) !== path) await files.symlink(path, link);
    }
    for (const other of install.also) await enableOne(other, done);
  }

  async function disableOne(unit: string, done: Set<string>): Promise<void> {
    if (done.has(unit) || done.size >= MOST_UNITS) return;
    done.add(unit);
    const found = await find(unit);
    for (const link of await unitLinks(files, unit)) await files.remove(link);
    if (found?.kind !== 'file') return;
    for (const other of found.install.also) await disableOne(other, done);
  }

  async function isPresetEnabled(unit: string): Promise<boolean> {
    const byName = new Map<string, string>();
    for (const directory of [...PRESET_PATH].reverse()) {
      for (const name of (await files.list(directory)) ?? []) {
        if (name.endsWith('.preset')) byName.set(name, posix.join(directory, name));
      }
    }
    for (const name of [...byName.keys()].sort()) {
      const text = await files.read(byName.get(name) as string, LARGEST_UNIT_BYTES);
      for (const line of (text?.toString('utf8') ?? '').split('\n')) {
        const [verb = '', pattern = ''] = line.trim().split(/\s+/);
        if ((verb === 'enable' || verb === 'disable') && posix.matchesGlob(unit, pattern)) return verb === 'enable';
      }
    }
    return true;
  }

  return {
    async isEnabled(unit) {
      const found = await find(unit);
      if (found === undefined) return 'not-found';
      if (found.kind === 'masked') return 'masked';
      if ((await unitLinks(files, unit)).length > 0) return 'enabled';
      return found.install.links.length === 0 && found.install.also.length === 0 ? 'static' : 'disabled';
    },
    async enable(units) {
      for (const unit of units) await enableOne(unit, new Set());
    },
    async disable(units) {
      for (const unit of units) {
        if ((await find(unit)) === undefined && (await unitLinks(files, unit)).length === 0)
          throw new HostError('command', `unit file ${unit} does not exist`);
        await disableOne(unit, new Set());
      }
    },
    async preset(unit) {
      await require(unit);
      await ((await isPresetEnabled(unit)) ? enableOne : disableOne)(unit, new Set());
    },
  };
}

/** Links of a unit in directories of dependencies, and its aliases: what makes it enabled. */
export async function unitLinks(files: HostFiles, unit: string): Promise<string[]> {
  const links: string[] = [];
  for (const name of (await files.list(UNIT_DIRECTORY)) ?? []) {
    const path = posix.join(UNIT_DIRECTORY, name);
    if (/\.(wants|requires|upholds)$/.test(name) && (await files.stat(path))?.kind === 'directory') {
      const link = posix.join(path, unit);
      if ((await files.readLink(link)) !== undefined) links.push(link);
    } else if (name !== unit && posix.basename((await files.readLink(path)) ?? '') === unit) links.push(path);
  }
  return links;
}

/** `getty@tty1.service` is made from `getty@.service`. */
function templateOf(unit: string): string {
  return unit.replace(/@[^.]*(?=\.)/, '@');
}

function installOf(text: string, unit: string): Install {
  const links: string[] = [];
  const also: string[] = [];
  let section = '';
  for (const line of text.replaceAll(/\\\n/g, ' ').split('\n')) {
    const header = /^\s*\[(.+)\]\s*$/.exec(line)?.[1];
    if (header !== undefined) section = header;
    const [, key = '', value = ''] = /^\s*([A-Za-z]+)\s*=\s*(.*)$/.exec(line) ?? [];
    if (section !== 'Install') continue;
    const names = value.split(/\s+/).filter(name => UNIT_NAME.test(name));
    const directory = DEPENDENCY_DIRECTORIES[key];
    if (directory !== undefined) links.push(...names.map(name => `${UNIT_DIRECTORY}/${name}.${directory}/${unit}`));
    if (key === 'Alias') links.push(...names.filter(name => name !== unit).map(name => `${UNIT_DIRECTORY}/${name}`));
    if (key === 'Also') also.push(...names);
  }
  return { links, also };
}

const DEPENDENCY_DIRECTORIES: Readonly<Record<string, string>> = {
  WantedBy: 'wants',
  RequiredBy: 'requires',
  UpheldBy: 'upholds',
};
