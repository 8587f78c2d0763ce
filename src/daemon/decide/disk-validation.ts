import { linkTarget, MASK } from '../../host/link-target.ts';
import type { HostFiles, HostServices } from '../../host/port.ts';
import { contentsOf, DEFAULT_FILE_MODE } from '../../machine-config-api/ignition/contents.ts';
import type { IgnitionConfig, IgnitionFile, IgnitionUnit } from '../../machine-config-api/ignition/types.ts';
import { IgnitionError } from '../../machine-config-api/ignition/types.ts';
import { dropinPath, isExempt, unitPath } from './disk-paths.ts';
import { modeText } from './mode-text.ts';
import { sshKeysDrift } from './ssh-keys-drift.ts';

/** How a disk is not what a config says. `path` is where; contents are never told, only that they differ. */
export interface Drift {
  readonly kind: 'file' | 'unit' | 'ssh';
  readonly path: string;
  readonly message: string;
}

/** What is looked at. */
export interface ValidatedHost {
  readonly files: Pick<HostFiles, 'read' | 'stat' | 'readLink' | 'list'>;
  readonly services: Pick<HostServices, 'isEnabled'>;
}

export interface ValidationOptions {
  /** The file with the keys of the user `core`; undefined where this host has no such user, and keys are not looked at. */
  readonly sshKeysPath?: string | undefined;
  /** Whether files of the certificate writer are compared too: 4.16 does so where the config is of spec 2. */
  readonly comparesCertificates?: boolean | undefined;
}

/**
 * Compares a disk with a config: files in order, then units in order, then keys; the first difference is returned, undefined if
 * there is none (spec 60, 11.1). Beyond 4.16 it looks at whether units are enabled, as seed 003 promises, and at the keys. Owners,
 * passwords, directories and what runs are not compared.
 */
export async function validateDisk(
  config: IgnitionConfig,
  host: ValidatedHost,
  options: ValidationOptions = {},
): Promise<Drift | undefined> {
  for (const file of config.storage?.files ?? []) {
    const isCompared = options.comparesCertificates === true || !isExempt(file.path);
    const drift = isCompared ? await fileDrift(file, host) : undefined;
    if (drift !== undefined) return drift;
  }
  for (const unit of config.systemd?.units ?? []) {
    const drift = await unitDrift(unit, host);
    if (drift !== undefined) return drift;
  }
  const { sshKeysPath } = options;
  return sshKeysPath === undefined ? undefined : sshKeysDrift(config, sshKeysPath, host.files);
}

async function fileDrift(file: IgnitionFile, { files }: ValidatedHost): Promise<Drift | undefined> {
  const { path, append = [], contents, mode = DEFAULT_FILE_MODE } = file;
  if (append.length > 0) return { kind: 'file', path, message: `file ${quoted(path)}: Append is not supported` };
  const message = await contentDrift(path, () => contentsOf(contents), mode, files);
  return message === undefined ? undefined : { kind: 'file', path, message };
}

async function unitDrift(unit: IgnitionUnit, host: ValidatedHost): Promise<Drift | undefined> {
  for (const { name, contents = '' } of unit.dropins ?? []) {
    const path = dropinPath(unit.name, name);
    const isAbsent = contents === '' && (await host.files.stat(path)) === undefined;
    const message = isAbsent
      ? undefined
      : await contentDrift(path, () => Buffer.from(contents), DEFAULT_FILE_MODE, host.files);
    if (message !== undefined) return { kind: 'unit', path, message };
  }
  const path = unitPath(unit.name);
  const message =
    unit.mask === true
      ? await maskDrift(unit, path, host)
      : ((await unitFileDrift(unit, path, host)) ?? (await enablementDrift(unit, host)));
  return message === undefined ? undefined : { kind: 'unit', path, message };
}

async function unitFileDrift({ contents = '' }: IgnitionUnit, path: string, { files }: ValidatedHost) {
  if (contents === '') return undefined;
  return contentDrift(path, () => Buffer.from(contents), DEFAULT_FILE_MODE, files);
}

/** A masked unit is a link to nowhere. Without contents nothing is looked at, not even that. */
async function maskDrift({ contents = '' }: IgnitionUnit, path: string, { files }: ValidatedHost) {
  const target = contents === '' ? MASK : await linkTarget(files, path);
  if (target === MASK) return undefined;
  return `invalid unit masked setting. path: ${quoted(path)}; expected: ${MASK}; received: ${target === path ? 'no link' : target}`;
}

/** What a host cannot say of a unit (generated, static, not found) is taken as said. */
async function enablementDrift(
  { name, enabled }: IgnitionUnit,
  { services }: ValidatedHost,
): Promise<string | undefined> {
  if (enabled === undefined) return undefined;
  const found = await services.isEnabled(name);
  const isWrong = enabled ? found === 'disabled' || found === 'masked' : found === 'enabled';
  return isWrong
    ? `unit ${quoted(name)}: expected: ${enabled ? 'enabled' : 'disabled'}; received: ${found}`
    : undefined;
}

async function contentDrift(
  path: string,
  wanted: () => Buffer,
  mode: number,
  files: ValidatedHost['files'],
): Promise<string | undefined> {
  const stat = await files.stat(path);
  if (stat === undefined) return `could not stat file ${quoted(path)}: it does not exist`;
  if (stat.kind !== 'file' || stat.mode !== mode) {
    return `mode mismatch for file: ${quoted(path)}; expected: ${modeText('file', mode)}; received: ${modeText(stat.kind, stat.mode)}`;
  }
  const contents = decoded(wanted);
  if (typeof contents === 'string') return `file ${quoted(path)}: ${contents}`;
  const isEqual = stat.size === contents.length && (await files.read(path, contents.length))?.equals(contents) === true;
  return isEqual ? undefined : `content mismatch for file ${quoted(path)}`;
}

/** A config that cannot be decoded cannot be on any disk; said, not thrown. */
function decoded(wanted: () => Buffer): Buffer | string {
  try {
    return wanted();
  } catch (error) {
    if (!(error instanceof IgnitionError)) throw error;
    return error.message;
  }
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
