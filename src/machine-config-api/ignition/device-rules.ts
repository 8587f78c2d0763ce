import { type Problem, pathProblem } from './path-rules.ts';
import type { SpecLevel } from './spec-level.ts';
import type { IgnitionConfig, IgnitionDisk, IgnitionFilesystem, IgnitionLuks, IgnitionPartition } from './types.ts';

/**
 * Disks, file systems, arrays and encrypted volumes. A running machine cannot be changed in these (spec 50, 6.5), but a first
 * configuration may hold them, and must then be one that Ignition accepts.
 */
type Storage = NonNullable<IgnitionConfig['storage']>;

export function* diskProblems({ disks = [] }: Storage): Generator<Problem> {
  for (const [index, disk] of disks.entries()) {
    const field = `storage.disks[${index}]`;
    yield* devicePath(disk.device, `${field}.device`);
    for (const [at, partition] of (disk.partitions ?? []).entries()) {
      for (const message of partitionProblems(partition)) yield { field: `${field}.partitions[${at}]`, message };
    }
    for (const message of layoutProblems(disk)) yield { field: `${field}.partitions`, message };
  }
}

const GUID = /^(?:|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$/;
const LONGEST_PARTITION_LABEL = 36;

function* partitionProblems(partition: IgnitionPartition): Generator<string> {
  const { number = 0, label, guid, typeGuid, sizeMiB, startMiB, shouldExist } = partition;
  const isDescribed = label !== undefined || !!typeGuid || !!guid || startMiB !== undefined || sizeMiB !== undefined;
  if (shouldExist === false && isDescribed) yield 'should not exist and is described all the same';
  if (number === 0 && label === undefined) yield 'needs a number or a label';
  if (label !== undefined && Buffer.byteLength(label) > LONGEST_PARTITION_LABEL)
    yield 'has a label of more than 36 bytes';
  if (label?.includes(':')) yield 'has a label with a colon';
  if (!GUID.test(guid ?? '') || !GUID.test(typeGuid ?? ''))
    yield 'has a GUID of another form than 8-4-4-4-12 hex digits';
}

function* layoutProblems({ partitions = [] }: IgnitionDisk): Generator<string> {
  const numbers = partitions.map(({ number = 0 }) => number).filter(number => number !== 0);
  if (new Set(numbers).size < numbers.length) yield 'use a number twice';
  const labels = partitions.flatMap(({ label }) => (label === undefined ? [] : [label]));
  if (new Set(labels).size < labels.length) yield 'use a label twice';
  const hasAnyNumber = partitions.some(({ number = 0 }) => number === 0);
  if (hasAnyNumber && partitions.some(({ shouldExist }) => shouldExist === false)) {
    yield 'mix partitions without a number with ones that should not exist';
  }
  const spans = partitions.flatMap(({ startMiB, sizeMiB }) =>
    startMiB === undefined || sizeMiB === undefined || startMiB === 0
      ? []
      : [{ start: startMiB, end: sizeMiB === 0 ? startMiB : startMiB + sizeMiB - 1 }],
  );
  const overlap = spans.some((a, i) => spans.some((b, j) => i !== j && a.start <= b.end && b.start <= a.end));
  if (overlap) yield 'overlap';
}

/** A device of which only the mount is described. */
const NO_FORMAT_SINCE = 3;

/** The longest label each kind of file system takes. */
export const LABEL_BYTES: Readonly<Record<string, number>> = {
  ext4: 16,
  btrfs: 256,
  xfs: 12,
  swap: 15,
  vfat: 11,
  none: Number.POSITIVE_INFINITY,
};

export function* filesystemProblems({ filesystems = [] }: Storage, level: SpecLevel): Generator<Problem> {
  for (const [index, filesystem] of filesystems.entries()) {
    const field = `storage.filesystems[${index}]`;
    yield* devicePath(filesystem.device, `${field}.device`);
    if (filesystem.path) yield* devicePath(filesystem.path, `${field}.path`);
    yield* formatProblems(filesystem, level, field);
  }
}

function* formatProblems(filesystem: IgnitionFilesystem, { minor }: SpecLevel, field: string): Generator<Problem> {
  const { format = '', path, label = '', uuid, wipeFilesystem, mountOptions = [], options = [] } = filesystem;
  if (format === '') {
    const isDescribed =
      !!path || label !== '' || !!uuid || wipeFilesystem === true || mountOptions.length + options.length > 0;
    if (isDescribed) yield { field: `${field}.format`, message: 'is required where anything else is said' };
    return;
  }
  const longest = Object.hasOwn(LABEL_BYTES, format) ? LABEL_BYTES[format] : undefined;
  if (longest === undefined || (format === 'none' && minor < NO_FORMAT_SINCE))
    yield { field: `${field}.format`, message: `expected one of ${Object.keys(LABEL_BYTES).join(', ')}` };
  else if (Buffer.byteLength(label) > longest)
    yield { field: `${field}.label`, message: `has more than ${longest} bytes` };
}

const RAID_LEVELS = new Set([
  'linear',
  'raid0',
  '0',
  'stripe',
  'raid1',
  '1',
  'mirror',
  'raid4',
  '4',
  'raid5',
  '5',
  'raid6',
  '6',
  'raid10',
  '10',
]);
const WITHOUT_SPARES = new Set(['linear', 'raid0', '0', 'stripe']);

export function* raidProblems({ raid = [] }: Storage): Generator<Problem> {
  for (const [index, { level = '', devices = [], spares = 0 }] of raid.entries()) {
    const field = `storage.raid[${index}]`;
    if (!RAID_LEVELS.has(level))
      yield { field: `${field}.level`, message: `${JSON.stringify(level)} is no RAID level` };
    else if (WITHOUT_SPARES.has(level) && spares !== 0)
      yield { field: `${field}.spares`, message: `level ${level} has no spares` };
    if (devices.length === 0) yield { field: `${field}.devices`, message: 'are required' };
    for (const [at, device] of devices.entries()) yield* devicePath(device, `${field}.devices[${at}]`);
  }
}

const LONGEST_LUKS_LABEL = 47;

export function* luksProblems({ luks = [] }: Storage, level: SpecLevel): Generator<Problem> {
  for (const [index, volume] of luks.entries()) {
    const field = `storage.luks[${index}]`;
    if (volume.name.includes('/')) yield { field: `${field}.name`, message: 'contains a slash' };
    if (Buffer.byteLength(volume.label ?? '') > LONGEST_LUKS_LABEL)
      yield { field: `${field}.label`, message: 'has more than 47 bytes' };
    yield* devicePath(volume.device ?? '', `${field}.device`);
    yield* clevisProblems(volume, level, `${field}.clevis`);
  }
}

function* clevisProblems({ clevis = {} }: IgnitionLuks, { minor }: SpecLevel, field: string): Generator<Problem> {
  const { custom = {}, tang = [], tpm2, threshold = 0 } = clevis;
  const isCustom = minor === 2 ? clevis.custom !== undefined : !!custom.pin;
  if (isCustom && (tang.length > 0 || tpm2 === true || threshold !== 0))
    yield { field, message: 'has a custom pin beside others' };
  if (custom.pin || custom.config || custom.needsNetwork === true) {
    if (!['tpm2', 'tang', 'sss'].includes(custom.pin ?? ''))
      yield { field: `${field}.custom.pin`, message: 'expected tpm2, tang or sss' };
    if (!custom.config) yield { field: `${field}.custom.config`, message: 'is required' };
  }
  for (const [index, { url, thumbprint, advertisement }] of tang.entries()) {
    const place = `${field}.tang[${index}]`;
    if (!/^https?:/.test(url ?? '')) yield { field: `${place}.url`, message: 'expected an http or https URL' };
    if (!thumbprint) yield { field: `${place}.thumbprint`, message: 'is required' };
    if (advertisement && !isJson(advertisement)) yield { field: `${place}.advertisement`, message: 'is not JSON' };
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function* devicePath(path: string, field: string): Generator<Problem> {
  const problem = pathProblem(path);
  if (problem !== undefined) yield { field, message: problem };
}
