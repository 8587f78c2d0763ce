import type { FieldValidation, PodLogOptions, WriteParameters } from '../rest/core.ts';
import { type AllDeleteOptions, dryRunErrors } from '../rest/delete-options.ts';
import type { PatchParameters, PatchType } from '../rest/patch.ts';
import type { ListParameters } from '../rest/read.ts';
import type { WatchParameters } from '../rest/watch.ts';
import { type FieldError, forbidden, invalid, invalidObject, required, unsupported } from '../schema/field-error.ts';
import { badRequest, quote } from '../status.ts';

/** Reads the parameters of URLs, and refuses those that make no sense, as the real server does. */

const META = 'meta.k8s.io';

export function isWatch(query: URLSearchParams): boolean {
  return flag(query, 'watch') === true;
}

export function listParameters(query: URLSearchParams): ListParameters {
  const errors: FieldError[] = [];
  const match = query.get('resourceVersionMatch') || undefined;
  const resourceVersion = query.get('resourceVersion') || undefined;
  if (match !== undefined) {
    const path = 'resourceVersionMatch';
    if (resourceVersion === undefined) {
      errors.push(forbidden(path, 'resourceVersionMatch is forbidden unless resourceVersion is provided'));
    }
    if (query.get('continue')) {
      errors.push(forbidden(path, 'resourceVersionMatch is forbidden when continue is provided'));
    }
    if (match !== 'Exact' && match !== 'NotOlderThan')
      errors.push(unsupported(path, match, ['Exact', 'NotOlderThan', '']));
    if (match === 'Exact' && resourceVersion === '0') {
      errors.push(forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
    }
  }
  if (flag(query, 'sendInitialEvents') !== undefined) {
    errors.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  refuse('ListOptions', errors);
  return {
    ...selectors(query),
    limit: integer(query, 'limit'),
    continue: query.get('continue') || undefined,
    resourceVersion,
    resourceVersionMatch: match as ListParameters['resourceVersionMatch'],
  };
}

export function watchParameters(query: URLSearchParams): WatchParameters & { timeoutSeconds: number | undefined } {
  const errors: FieldError[] = [];
  const path = 'resourceVersionMatch';
  const match = query.get(path) || undefined;
  const sendInitialEvents = flag(query, 'sendInitialEvents');
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    errors.push(forbidden(path, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'));
  }
  if (match !== undefined) {
    if (sendInitialEvents === undefined) {
      errors.push(forbidden(path, 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'));
    }
    if (match !== 'NotOlderThan') errors.push(unsupported(path, match, ['NotOlderThan']));
  }
  // A list goes on where a token says, a watch at a version.
  if (query.get('continue') && (match !== undefined || (query.get('resourceVersion') || '0') === '0')) {
    errors.push(forbidden(path, 'resourceVersionMatch is forbidden when continue is provided'));
  }
  refuse('ListOptions', errors);
  return {
    ...selectors(query),
    resourceVersion: query.get('resourceVersion') || undefined,
    allowBookmarks: flag(query, 'allowWatchBookmarks') === true,
    sendInitialEvents: sendInitialEvents === true,
    timeoutSeconds: integer(query, 'timeoutSeconds'),
  };
}

export type WriteKind = 'CreateOptions' | 'UpdateOptions' | 'PatchOptions';

export function writeParameters(
  query: URLSearchParams,
  userAgent: string | undefined,
  kind: WriteKind,
): WriteParameters {
  const manager = query.get('fieldManager') ?? '';
  const validation = query.get('fieldValidation') ?? '';
  const errors = [...dryRunErrors(query.getAll('dryRun')), ...managerErrors(manager)];
  if (!VALIDATIONS.includes(validation)) errors.push(unsupported('fieldValidation', validation, VALIDATIONS));
  refuse(kind, errors);
  return {
    dryRun: query.getAll('dryRun').length > 0,
    fieldManager: manager || managerOf(userAgent),
    fieldValidation: (validation || 'Warn') as FieldValidation,
  };
}

export function patchParameters(
  query: URLSearchParams,
  userAgent: string | undefined,
  type: PatchType,
): PatchParameters {
  const force = flag(query, 'force');
  const errors: FieldError[] = [];
  if (type === 'apply' && !query.get('fieldManager'))
    errors.push(required('fieldManager', 'is required for apply patch'));
  if (type !== 'apply' && force !== undefined)
    errors.push(forbidden('force', 'may not be specified for non-apply patch'));
  refuse('PatchOptions', errors);
  return { ...writeParameters(query, userAgent, 'PatchOptions'), type, force: force === true };
}

/** Deletions say what they want in the URL or in a body; the body wins. */
export function deleteOptions(query: URLSearchParams): AllDeleteOptions {
  const grace = integer(query, 'gracePeriodSeconds');
  const orphan = flag(query, 'orphanDependents');
  const evenDamaged = flag(query, 'ignoreStoreReadErrorWithClusterBreakingPotential');
  return {
    ...(query.has('dryRun') ? { dryRun: query.getAll('dryRun') } : {}),
    ...(grace === undefined ? {} : { gracePeriodSeconds: grace }),
    ...(query.get('propagationPolicy') ? { propagationPolicy: query.get('propagationPolicy') as string } : {}),
    ...(orphan === undefined ? {} : { orphanDependents: orphan }),
    ...(evenDamaged === undefined ? {} : { ignoreStoreReadErrorWithClusterBreakingPotential: evenDamaged }),
  };
}

export function logParameters(
  query: URLSearchParams,
  pod: string,
): Omit<PodLogOptions, 'signal'> & { container: string } {
  const sinceTime = query.get('sinceTime');
  const time = sinceTime === null ? undefined : new Date(sinceTime);
  if (time !== undefined && Number.isNaN(time.getTime()))
    throw badRequest(`sinceTime: not a time: ${quote(sinceTime ?? '')}`);
  const tailLines = integer(query, 'tailLines');
  const sinceSeconds = integer(query, 'sinceSeconds');
  const limitBytes = integer(query, 'limitBytes');
  const errors = [
    ...(tailLines !== undefined && tailLines < 0
      ? [invalid('tailLines', tailLines, 'must be greater than or equal to 0')]
      : []),
    ...positive('limitBytes', limitBytes),
    ...(time !== undefined && sinceSeconds !== undefined
      ? [forbidden('[]', 'at most one of `sinceTime` or `sinceSeconds` may be specified')]
      : positive('sinceSeconds', sinceSeconds)),
  ];
  if (errors.length > 0) throw invalidObject('', 'PodLogOptions', pod, errors);
  return {
    container: query.get('container') ?? '',
    follow: flag(query, 'follow') === true,
    previous: flag(query, 'previous') === true,
    timestamps: flag(query, 'timestamps') === true,
    tailLines,
    sinceSeconds,
    sinceTime: time,
    limitBytes,
  };
}

function positive(path: string, value: number | undefined): FieldError[] {
  return value === undefined || value > 0 ? [] : [invalid(path, value, 'must be greater than 0')];
}

export function flag(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name);
  if (text === null || text === '') return text === null ? undefined : true;
  return text !== 'false' && text !== '0';
}

function selectors(query: URLSearchParams): { labelSelector?: string | undefined; fieldSelector?: string | undefined } {
  return {
    labelSelector: query.get('labelSelector') || undefined,
    fieldSelector: query.get('fieldSelector') || undefined,
  };
}

const VALIDATIONS: readonly string[] = ['', 'Ignore', 'Strict', 'Warn'];
const LONGEST_MANAGER = 128;

function managerErrors(manager: string): FieldError[] {
  if (manager.length > LONGEST_MANAGER) {
    return [
      { path: 'fieldManager', reason: 'FieldValueTooLong', detail: `may not be more than ${LONGEST_MANAGER} bytes` },
    ];
  }
  const printable = !/\p{C}/u.test(manager);
  return printable ? [] : [invalid('fieldManager', manager, 'should only contain printable characters')];
}

/** Who owns what a client writes that names no manager: the program, without its version. */
function managerOf(userAgent: string | undefined): string {
  return (userAgent ?? 'unknown').split('/', 1)[0]?.slice(0, LONGEST_MANAGER) || 'unknown';
}

function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (!/^[-+]?\d{1,15}$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${quote(text)}: invalid syntax`);
  return Number(text);
}

function refuse(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject(META, kind, '', errors);
}
