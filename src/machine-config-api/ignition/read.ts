import { IGNITION_SHAPE } from './schema.ts';
import { isObject, shaped } from './shape.ts';
import { levelOfSpec3 } from './spec-level.ts';
import { IGNITION_VERSION, type IgnitionConfig, IgnitionError } from './types.ts';
import { readIgnition2 } from './v2.ts';
import { checkIgnition } from './validate.ts';

export interface ReadOptions {
  /** A machine is in it already: it must be a document of Ignition, but not one that we would take today (spec 60, section 7). */
  readonly isStored?: boolean | undefined;
}

/**
 * Reads an Ignition document of spec 2.0 to 2.2 or 3.0 to 3.4, checks it and gives it as 3.4 (spec 50, RN-9, RN-12). Undefined
 * for a document that says nothing at all. Throws `IgnitionError`.
 */
export function readIgnition(document: unknown, options: ReadOptions = {}): IgnitionConfig | undefined {
  if (document === undefined || document === null) return undefined;
  if (!isObject(document)) throw new IgnitionError('', 'expected a JSON object');
  if (Object.keys(document).length === 0) return undefined;
  const { major, minor } = versionOf(document);
  if (major === 2) return readIgnition2(document, minor, options.isStored === true);
  const config = shaped(document, IGNITION_SHAPE, minor, '') as IgnitionConfig;
  config.ignition = { ...config.ignition, version: IGNITION_VERSION };
  if (minor < SPECIAL_BITS_SINCE) maskSpecialBits(config);
  return checkIgnition(config, { ...options, level: levelOfSpec3(minor) });
}

/** Whether a document that can be read is one of spec 2. */
export function isSpec2(document: unknown): boolean {
  return isObject(document) && Object.keys(document).length > 0 && versionOf(document).major === 2;
}

/** As people know it: 2.2 stands for all of spec 2 up to it. */
const SUPPORTED = 'Supported spec versions: 2.2, 3.0, 3.1, 3.2, 3.3, 3.4';
const SPECIAL_BITS_SINCE = 4;
const SPECIAL_BITS = 0o7000;

/** With a pre-release or build part it is a version too, but none that is known. */
const SEMANTIC_VERSION = /^(\d{1,19})\.(\d{1,19})\.(\d{1,19})(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?$/;
const LARGEST_PART = 2n ** 63n - 1n;

interface Version {
  readonly major: number;
  readonly minor: number;
}

function versionOf(document: Record<string, unknown>): Version {
  const ignition = document['ignition'];
  const version = isObject(ignition) ? ignition['version'] : undefined;
  const match = typeof version === 'string' ? SEMANTIC_VERSION.exec(version) : null;
  if (match === null || match.slice(1, 4).some(part => BigInt(part) > LARGEST_PART))
    throw new IgnitionError('ignition.version', `invalid version. ${SUPPORTED}`);
  const [major, minor, patch] = match.slice(1, 4).map(Number) as [number, number, number];
  const isPlain = match[4] === undefined && match[5] === undefined;
  const isKnown = isPlain && patch === 0 && ((major === 3 && minor <= 4) || (major === 2 && minor <= 2));
  if (!isKnown) throw new IgnitionError('ignition.version', `unknown version. ${SUPPORTED}; found ${match[0]}`);
  return { major, minor };
}

/** Set-uid, set-gid and sticky bits mean something from 3.4 on; older documents have them cleared. */
function maskSpecialBits({ storage = {} }: IgnitionConfig): void {
  for (const node of [...(storage.files ?? []), ...(storage.directories ?? [])]) {
    if (node.mode !== undefined && node.mode >= 0) node.mode &= ~SPECIAL_BITS;
  }
}
