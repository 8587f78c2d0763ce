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
  const wanted = acceptedTypes((accept ?? '').slice(0, LONGEST_HEADER)).flatMap(({ subtype, version }) =>
    subtype === IGNITION_SUBTYPE && version !== undefined ? [version] : [],
  );
  for (const version of wanted) {
    const offer = OFFERED.find(({ from, below }) => compare(version, from) >= 0 && compare(version, below) < 0);
    if (offer !== undefined) return offer.version;
  }
  return wanted.length === 0 ? DEFAULT_VERSION : undefined;
}

interface AcceptedType {
  readonly subtype: string;
  readonly version: Version | undefined;
  readonly quality: number;
}

function acceptedTypes(header: string): AcceptedType[] {
  return header
    .split(',')
    .map(value => value.split(';').map(part => part.trim()))
    .flatMap(([type = '', ...parameters]) => {
      const slash = type.indexOf('/');
      if (slash < 0) return [];
      const valuesOf = (name: string) =>
        parameters
          .filter(parameter => parameter.startsWith(`${name}=`))
          .map(parameter => parameter.slice(name.length + 1));
      const version = valuesOf('version')
        .map(parseVersion)
        .find(read => read !== undefined);
      const [quality = 1] = valuesOf('q')
        .filter(text => text.trim() !== '')
        .map(Number)
        .filter(value => !Number.isNaN(value));
      return [{ subtype: type.slice(slash + 1), version, quality }];
    })
    .sort((a, b) => b.quality - a.quality);
}

/** Major, minor, patch, and -1 for what comes before a release. */
type Version = readonly [major: number, minor: number, patch: number, stage: number];

function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch, stage] = /^(\d+)\.(\d+)\.(\d+)(-[^+]*)?(?:\+.*)?$/.exec(text) ?? [];
  if (major === undefined) return undefined;
  return [Number(major), Number(minor), Number(patch), stage === undefined ? 0 : -1];
}

/** Bounds are releases: what they leave out is 0. */
function compare(version: Version, bound: readonly number[]): number {
  return version.map((part, index) => part - (bound[index] ?? 0)).find(difference => difference !== 0) ?? 0;
}
