import type { HostFiles } from './port.ts';

/** Which operating system a machine runs, as far as the agent treats them differently. */
export interface OperatingSystem {
  readonly id: string;
  /** Of the distribution it is made from: 9.2 for RHCOS 4.16. */
  readonly version: string;
  /** RHCOS or SCOS. */
  readonly isEL: boolean;
  readonly isEL9: boolean;
  readonly isFCOS: boolean;
  readonly isSCOS: boolean;
  /** RHCOS, SCOS, FCOS or what is made from them: the operating system is an image. */
  readonly isCoreOSVariant: boolean;
  readonly isRHEL7Like: boolean;
  readonly prometheusLabel: string;
}

const PLACES = ['/etc/os-release', '/usr/lib/os-release'];
const LARGEST_BYTES = 64 * 1024;

/** The operating system of a host; one without os-release is of no known kind (spec 60, 1.3). */
export async function readOperatingSystem(files: HostFiles): Promise<OperatingSystem> {
  for (const place of PLACES) {
    const text = await files.read(place, LARGEST_BYTES);
    if (text !== undefined) return operatingSystemOf(text.toString('utf8'));
  }
  return operatingSystemOf('');
}

/** Classifies the text of an os-release file. */
export function operatingSystemOf(text: string): OperatingSystem {
  const fields = fieldsOf(text);
  const id = fields.get('ID') ?? '';
  const version = versionOf(fields);
  const isSCOS = id === 'scos';
  const isEL = id === 'rhcos' || isSCOS;
  const isCoreOSVariant = fields.get('VARIANT_ID') === 'coreos' || isEL;
  const isFCOS = id === 'fedora' && isCoreOSVariant;
  return {
    id,
    version,
    isEL,
    isEL9: isEL && /^9(\.|$)/.test(version),
    isFCOS,
    isSCOS,
    isCoreOSVariant,
    isRHEL7Like: isRhel7Like(version),
    prometheusLabel: id === '' ? 'unsupported' : id.toUpperCase(),
  };
}

/** Whether a version is one of the 7 series. */
export function isRhel7Like(version: string): boolean {
  return /^7(\.|$)/.test(version);
}

function versionOf(fields: ReadonlyMap<string, string>): string {
  const platform = /^platform:el(\d+)/.exec(fields.get('PLATFORM_ID') ?? '')?.[1];
  return fields.get('RHEL_VERSION') ?? platform ?? fields.get('VERSION_ID') ?? '';
}

function fieldsOf(text: string): Map<string, string> {
  const lines = text.split('\n').map(line => /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(line.trim()));
  return new Map(lines.flatMap(match => (match ? [[match[1] as string, unquoted(match[2] as string)]] : [])));
}

function unquoted(value: string): string {
  const inner = /^"(.*)"$|^'(.*)'$/.exec(value);
  return (inner?.[1] ?? inner?.[2] ?? value).replaceAll(/\\([\\"$`])/g, '$1');
}
