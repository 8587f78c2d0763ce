import type { Log } from '../../controller/log.ts';
import { isMask, MASK } from '../../host/link-target.ts';
import type { Host } from '../../host/port.ts';
import type { IgnitionDropin, IgnitionUnit } from '../../machine-config-api/ignition/types.ts';
import { isInPlace } from './files.ts';
import { keepOriginal } from './originals.ts';

const UNIT_DIRECTORY = '/etc/systemd/system';
const VENDOR_DIRECTORIES = ['/usr/local/lib/systemd/system', '/usr/lib/systemd/system', '/lib/systemd/system'];
const UNIT_MODE = 0o644;
const ROOT = { uid: 0, gid: 0 };

export interface UnitOptions {
  readonly isCoreOSVariant: boolean;
  readonly log?: Log | undefined;
}

export function unitPath(unit: string): string {
  return `${UNIT_DIRECTORY}/${unit}`;
}

export function dropinPath(unit: string, dropin: string): string {
  return `${UNIT_DIRECTORY}/${unit}.d/${dropin}`;
}

/** Whether a path is a drop-in of one of the units (spec 60, 8.4). */
export function isDropinOf(path: string, units: readonly IgnitionUnit[]): boolean {
  return units.some(({ name, dropins = [] }) => dropins.some(dropin => dropinPath(name, dropin.name) === path));
}

/** Whether a unit of the config is a file on disk. */
export function hasContents({ contents = '' }: { readonly contents?: string }): boolean {
  return contents !== '';
}

/**
 * Writes units and drop-ins and enables or disables them (spec 60, 8.3). Only those given are touched: the caller leaves out what
 * did not change (D-28). Nothing is reloaded or started here.
 */
export async function writeUnits(host: Host, units: readonly IgnitionUnit[], options: UnitOptions): Promise<void> {
  const [enabled, disabled]: [string[], string[]] = [[], []];
  for (const unit of units) {
    for (const dropin of unit.dropins ?? []) await writeDropin(host, unit.name, dropin, options);
    await writeUnit(host, unit, options);
    if (unit.enabled === undefined) await presetQuietly(host, unit.name, options);
    else if (await canBeSwitched(host, unit, options)) (unit.enabled ? enabled : disabled).push(unit.name);
  }
  if (enabled.length > 0) await host.services.enable(enabled);
  if (disabled.length > 0) await host.services.disable(disabled);
  if (enabled.length > 0) options.log?.info({ units: enabled }, 'Enabled systemd units');
}

/** Whether a unit, its drop-ins and its enablement are on disk as the config says. */
export async function isUnitInPlace({ files, services }: Host, unit: IgnitionUnit): Promise<boolean> {
  const opposite = unit.enabled === true ? 'disabled' : 'enabled';
  if (unit.enabled !== undefined && unit.mask !== true && (await services.isEnabled(unit.name)) === opposite)
    return false;
  for (const { name, contents = '' } of unit.dropins ?? []) {
    const path = dropinPath(unit.name, name);
    if (contents === '' ? (await files.stat(path)) !== undefined : !(await isInPlace(files, textFile(path, contents))))
      return false;
  }
  const path = unitPath(unit.name);
  if (unit.mask === true) return isMask(files, path);
  if (hasContents(unit)) return isInPlace(files, textFile(path, unit.contents ?? ''));
  return unit.mask === undefined || !(await isMask(files, path));
}

function textFile(path: string, text: string) {
  return { path, content: Buffer.from(text), mode: UNIT_MODE, owner: ROOT };
}

async function writeDropin(
  host: Host,
  unit: string,
  { name, contents = '' }: IgnitionDropin,
  options: UnitOptions,
): Promise<void> {
  const path = dropinPath(unit, name);
  if (contents === '') {
    if ((await host.files.stat(path)) !== undefined) await host.files.remove(path);
    return;
  }
  await writeText(host, path, contents, options);
}

async function writeUnit(host: Host, unit: IgnitionUnit, options: UnitOptions): Promise<void> {
  const path = unitPath(unit.name);
  if (unit.mask === true) {
    if (!(await isMask(host.files, path))) await host.files.symlink(MASK, path);
    return;
  }
  if (hasContents(unit)) {
    // The directories its links are in may be others after the change.
    if ((await host.services.isEnabled(unit.name)) === 'enabled') await host.services.disable([unit.name]);
    await writeText(host, path, unit.contents ?? '', options);
    return;
  }
  if (unit.mask === false) await host.files.remove(path);
}

async function writeText(host: Host, path: string, text: string, { isCoreOSVariant }: UnitOptions): Promise<void> {
  if (isCoreOSVariant && (await host.files.stat(`/usr${path}`)) !== undefined)
    await keepOriginal(host, path, `/usr${path}`);
  const wanted = textFile(path, text);
  if (!(await isInPlace(host.files, wanted)))
    await host.files.write(path, wanted.content, { mode: UNIT_MODE, owner: ROOT });
}

/** A unit that is masked or does not exist can be neither enabled nor disabled, which must not fail all others (D-29). */
async function canBeSwitched(host: Host, unit: IgnitionUnit, { log }: UnitOptions): Promise<boolean> {
  if (unit.mask !== true && hasContents(unit)) return true;
  const state = unit.mask === true ? 'masked' : await host.services.isEnabled(unit.name);
  if (state !== 'masked' && state !== 'not-found') return true;
  log?.warn({ unit: unit.name, state, enabled: unit.enabled }, 'unit cannot be enabled or disabled');
  return false;
}

async function presetQuietly(host: Host, unit: string, { log }: UnitOptions): Promise<void> {
  try {
    await host.services.preset(unit);
  } catch (error) {
    log?.debug({ unit, err: error }, 'preset of the unit failed');
  }
}

/** Prepares for the removal of a unit: back to its preset, and without links to a file that will be gone (spec 60, 8.4.5). */
export async function retireUnit(host: Host, unit: string, options: UnitOptions): Promise<void> {
  await presetQuietly(host, unit, options);
  if ((await host.files.stat(unitPath(unit)))?.kind !== 'file') return;
  for (const directory of VENDOR_DIRECTORIES) {
    if ((await host.files.stat(`${directory}/${unit}`)) !== undefined) return;
  }
  if ((await host.services.isEnabled(unit)) === 'enabled') await host.services.disable([unit]);
}
