import { decodeDataUrl } from './data-url.ts';
import type { Problem } from './path-rules.ts';
import type { SpecLevel } from './spec-level.ts';
import type { IgnitionConfig, IgnitionResource } from './types.ts';
import { isParsable } from './url-syntax.ts';

/** An object of the API holds about 1.5 MB, and a rendered config is one object with all files of a pool. */
export const LONGEST_SOURCE = 1024 * 1024;

/** What is wrong with the contents that a document carries or points to. */
export function* resourceProblems(config: IgnitionConfig, level: SpecLevel): Generator<Problem> {
  for (const [field, resource, isRequired] of resourcesOf(config, level)) {
    const { source, compression, verification, httpHeaders = [] } = resource;
    if (isRequired && !source) yield { field: `${field}.source`, message: 'is required' };
    if (source) {
      const problem = urlProblem(source, level);
      if (problem !== undefined) yield { field: `${field}.source`, message: problem };
      if (source.length > LONGEST_SOURCE) {
        const message = `has ${source.length} characters, at most ${LONGEST_SOURCE} fit`;
        yield { field: `${field}.source`, message, isOwnRule: true };
      }
    }
    if (compression !== undefined && compression !== '' && compression !== 'gzip') {
      yield { field: `${field}.compression`, message: 'expected gzip or nothing' };
    }
    yield* hashProblems(verification?.hash, source, level, `${field}.verification.hash`);
    if (httpHeaders.length > 0 && !/^https?:/.test(source ?? '')) {
      yield { field: `${field}.httpHeaders`, message: 'belong to an http or https source' };
    }
    for (const [index, { name, value }] of httpHeaders.entries()) {
      if (name === '' || value === '')
        yield { field: `${field}.httpHeaders[${index}]`, message: 'has an empty name or value' };
    }
  }
}

/** Why Ignition could not fetch from there, undefined if it could. */
export function urlProblem(url: string, { schemes }: SpecLevel): string | undefined {
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(url)?.[1]?.toLowerCase();
  // oxlint-disable-next-line no-control-regex -- controls are what is refused
  if (/[\x00-\x1f\x7f]/.test(url)) return 'contains control characters';
  if (scheme === undefined || !schemes.has(scheme)) return 'has an unknown scheme';
  if (scheme === 'data') {
    return decodeDataUrl(url) === undefined ? 'is not a data URL that can be decoded' : undefined;
  }
  if (!isParsable(url)) return 'is not a URL';
  if (scheme === 's3' || scheme === 'arn') {
    if (/[?&]versionId=(?:&|$)/.test(url)) return 'has an empty versionId';
    const isObject = /^arn:[^:]*:s3:[^:]*:[^:]*:(?!accesspoint\/[^/]*$)[^/]+\/.+/.test(url);
    return scheme === 's3' || isObject ? undefined : 'is not an ARN of an object in S3';
  }
  return undefined;
}

const DIGESTS: Readonly<Record<string, { characters: number; since: number }>> = {
  sha256: { characters: 64, since: 1 },
  sha512: { characters: 128, since: 0 },
};

function* hashProblems(
  hash: string | undefined,
  source: string | undefined,
  { minor }: SpecLevel,
  field: string,
): Generator<Problem> {
  if (hash === undefined) return;
  if (source === undefined) yield { field, message: 'verifies nothing without a source' };
  const dash = hash.indexOf('-');
  const name = hash.slice(0, dash);
  const digest = dash >= 0 && Object.hasOwn(DIGESTS, name) ? DIGESTS[name] : undefined;
  if (digest === undefined || digest.since > minor || Buffer.byteLength(hash) - dash - 1 !== digest.characters) {
    yield { field, message: minor === 0 ? 'expected sha512-<hex>' : 'expected sha256-<hex> or sha512-<hex>' };
  }
}

type Place = readonly [field: string, resource: IgnitionResource, isRequired: boolean];

function* resourcesOf({ ignition, storage = {} }: IgnitionConfig, { isFromSpec2 }: SpecLevel): Generator<Place> {
  for (const [index, resource] of (ignition.config?.merge ?? []).entries())
    yield [`ignition.config.merge[${index}]`, resource, !isFromSpec2];
  if (ignition.config?.replace !== undefined) yield ['ignition.config.replace', ignition.config.replace, false];
  for (const [index, ca] of (ignition.security?.tls?.certificateAuthorities ?? []).entries()) {
    yield [`ignition.security.tls.certificateAuthorities[${index}]`, ca, true];
  }
  for (const [index, file] of (storage.files ?? []).entries()) {
    const field = `storage.files[${index}]`;
    if (file.contents !== undefined) yield [`${field}.contents`, file.contents, false];
    for (const [at, part] of (file.append ?? []).entries()) yield [`${field}.append[${at}]`, part, false];
  }
  for (const [index, { keyFile }] of (storage.luks ?? []).entries()) {
    if (keyFile !== undefined) yield [`storage.luks[${index}].keyFile`, keyFile, false];
  }
}
