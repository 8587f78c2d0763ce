/** Ignition versions that can be served, and the range of requested ones each answers (spec 50, MS-2). */
const OFFERED = [
  { version: '3.4.0', from: [3, 4], below: [4, 0] },
  { version: '3.3.0', from: [3, 3], below: [3, 4] },
  { version: '3.2.0', from: [3, 2], below: [3, 3] },
  { version: '3.1.0', from: [3, 1], below: [3, 2] },
  { version: '2.2.0', from: [2, 2], below: [3, 0] },
] as const;
const DEFAULT_VERSION = '2.2.0';
const IGNITION_SUBTYPE = 'vnd.coreos.ignition+json';
/** Longer headers are cut off: nobody means anything with them. */
const LONGEST_HEADER = 4096;

export type ServedVersion = (typeof OFFERED)[number]['version'];

/** The version to serve for an Accept header, by preference; undefined where only versions are asked for that we have not. */
export function servedVersion(accept: string | undefined): ServedVersion | undefined {
  const wanted = acceptedTypes((accept ?? '').slice(0, LONGEST_HEADER)).filter(
    ({ subtype, version }) => subtype === IGNITION_SUBTYPE && version !== undefined,
  );
  for (const { version } of wanted) {
    const offer = OFFERED.find(
      ({ from, below }) => compare(version ?? [], from) >= 0 && compare(version ?? [], below) < 0,
    );
    if (offer !== undefined) return offer.version;
  }
  return wanted.length === 0 ? DEFAULT_VERSION : undefined;
}

interface AcceptedType {
  readonly subtype: string;
  readonly version: readonly number[] | undefined;
  readonly quality: number;
}

function acceptedTypes(header: string): AcceptedType[] {
  return header
    .split(',')
    .map(value => value.split(';').map(part => part.trim()))
    .flatMap(([type = '', ...parameters]) => {
      const slash = type.indexOf('/');
      if (slash < 0) return [];
      const valueOf = (name: string) =>
        parameters.find(parameter => parameter.startsWith(`${name}=`))?.slice(name.length + 1);
      const quality = Number(valueOf('q') ?? 1);
      return [
        {
          subtype: type.slice(slash + 1),
          version: parseVersion(valueOf('version')),
          quality: Number.isNaN(quality) ? 1 : quality,
        },
      ];
    })
    .sort((a, b) => b.quality - a.quality);
}

function parseVersion(text: string | undefined): number[] | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)(?:[-+].*)?$/.exec(text ?? '');
  return match === null ? undefined : match.slice(1, 4).map(Number);
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [index, part] of b.entries()) {
    const difference = (a[index] ?? 0) - part;
    if (difference !== 0) return difference;
  }
  return 0;
}
