import type { Status } from 'kubernetes-types/meta/v1.d.ts';
import { KubeError } from './error.ts';

const REASONS: Record<number, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** The error an answer stands for: its `Status` object, or where something else answered, the meaning of the HTTP code. */
export function answeredError(code: number, text: string, method: string, path: string): KubeError {
  const status = statusOf(text);
  if (status !== undefined) return KubeError.fromStatus(status, code);
  const reason = code === 409 && method === 'POST' ? 'AlreadyExists' : (REASONS[code] ?? 'Unknown');
  return new KubeError(code, reason, `${method} ${path}: the server answered ${code} without a Status object`);
}

function statusOf(text: string): Status | undefined {
  try {
    const value = JSON.parse(text) as Status | null;
    return typeof value === 'object' && value?.kind === 'Status' ? value : undefined;
  } catch {
    return undefined;
  }
}

type Header = string | string[] | undefined;

/** How long the server wants us to wait: `Retry-After` in seconds or as a date. */
export function retryAfterMs(header: Header, now: Date): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim();
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const date = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime());
}

const MOST_WARNINGS = 20;
const LONGEST_WARNING = 1024;

/** The texts of `Warning: 299 - "text"` headers. */
export function warningsOf(header: Header): string[] {
  const texts: string[] = [];
  for (const line of Array.isArray(header) ? header : header === undefined ? [] : [header]) {
    for (const [, quoted = ''] of line.matchAll(/(?:^|,\s*)299 [^ ]+ "((?:[^"\\]|\\.)*)"/g)) {
      if (texts.length < MOST_WARNINGS) texts.push(quoted.replaceAll(/\\(.)/g, '$1').slice(0, LONGEST_WARNING));
    }
  }
  return texts;
}
