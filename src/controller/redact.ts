const HIDDEN = '[redacted]';
/** Field names whose values are never shown, whatever they are. */
const SECRET_FIELD =
  /^(?:.*(?:password|passphrase|privatekey|secretkey|bearertoken|accesstoken|clientkeydata|client-key-data)|token|authorization|tls\.key|key-data|keypem)$/i;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
/** The same inside base64, as Secrets carry it: it begins with `-----BEGIN `, at any of the three alignments. */
const ENCODED_PEM = /(?:LS0tLS1CRUdJTi|0tLS0tQkVHSU4g|tLS0tLUJFR0lO)[A-Za-z0-9+/=_-]+/g;
const JSON_WEB_TOKEN = /\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g;
const BEARER = /\b(bearer\s+)[^\s"',]+/gi;

const DEEPEST = 8;
const MOST_ITEMS = 100;
const LONGEST_TEXT = 8 * 1024;

/** A copy of log fields without keys, tokens and contents of Secrets, and of bounded size. */
export function redacted(fields: object): Record<string, unknown> {
  return redactObject(fields, 0);
}

/** A text without the keys and tokens that may be in it, and of bounded length. */
export function redactedText(text: string): string {
  const cut = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}...` : text;
  return cut
    .replaceAll(PRIVATE_KEY, HIDDEN)
    .replaceAll(ENCODED_PEM, HIDDEN)
    .replaceAll(JSON_WEB_TOKEN, HIDDEN)
    .replaceAll(BEARER, `$1${HIDDEN}`);
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return redactedText(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof Error) return redactError(value, depth);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth >= DEEPEST) return '[deep]';
  if (Array.isArray(value)) {
    const shown = value.slice(0, MOST_ITEMS).map(item => redactValue(item, depth + 1));
    return value.length > MOST_ITEMS ? [...shown, `and ${value.length - MOST_ITEMS} more`] : shown;
  }
  if ('asymmetricKeyType' in value) return HIDDEN;
  return redactObject(value, depth);
}

function redactObject(object: object, depth: number): Record<string, unknown> {
  const isSecret = 'kind' in object && object.kind === 'Secret';
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(object).slice(0, MOST_ITEMS)) {
    const hide = SECRET_FIELD.test(name) || (isSecret && (name === 'data' || name === 'stringData'));
    result[name] = hide && value !== undefined ? HIDDEN : redactValue(value, depth + 1);
  }
  return result;
}

function redactError(error: Error, depth: number): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  return {
    type: name,
    message: redactedText(message),
    stack: redactedText(stack ?? ''),
    ...(cause === undefined || depth >= DEEPEST ? {} : { cause: redactValue(cause, depth + 1) }),
    ...redactObject(Object.fromEntries(Object.entries(error).filter(([field]) => field !== 'name')), depth),
  };
}
