import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { type FieldError, invalid, required, tooLong } from '../../schema/field-error.ts';
import { isObject } from '../../schema/json.ts';
import type { Fields, Rules } from '../kind.ts';
import { frozenContent, unchanged } from './immutable.ts';

export const LARGEST_CONTENT_BYTES = 1024 * 1024;

export const secretRules: Rules = {
  checkCreate: contentErrors,
  checkUpdate: (object, old) => [
    ...unchanged(object, old, 'type'),
    ...frozenContent(object, old, ['data']),
    ...contentErrors(object),
  ],
};

export const configMapRules: Rules = {
  checkCreate: configMapErrors,
  checkUpdate: (object, old) => [...frozenContent(object, old, ['data', 'binaryData']), ...configMapErrors(object)],
};

/** What each well-known type must have in its data. */
const NEEDED_KEYS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
};

const JSON_KEYS: ReadonlySet<string> = new Set(['.dockercfg', '.dockerconfigjson']);
const SERVICE_ACCOUNT_NAME = 'kubernetes.io/service-account.name';

function contentErrors(secret: Fields): FieldError[] {
  const data = fieldsOf(secret['data']);
  const errors: FieldError[] = [];
  if (decodedBytes(data) > LARGEST_CONTENT_BYTES) errors.push(tooLong('data', LARGEST_CONTENT_BYTES));
  const type = (secret as Secret).type ?? '';
  for (const key of NEEDED_KEYS[type] ?? []) {
    const missing = type === 'kubernetes.io/ssh-auth' ? !data[key] : !Object.hasOwn(data, key);
    if (missing) errors.push(required(`data[${key}]`));
    else if (JSON_KEYS.has(key) && !isJsonObject(data[key])) {
      errors.push(invalid(`data[${key}]`, '<secret contents redacted>', 'expected a JSON object'));
    }
  }
  if (type === 'kubernetes.io/basic-auth' && !('username' in data) && !('password' in data)) {
    errors.push(required('data[username]'), required('data[password]'));
  }
  if (type === 'kubernetes.io/service-account-token' && !secret.metadata?.annotations?.[SERVICE_ACCOUNT_NAME]) {
    errors.push(required(`metadata.annotations[${SERVICE_ACCOUNT_NAME}]`));
  }
  return errors;
}

function configMapErrors(configMap: Fields): FieldError[] {
  const data = fieldsOf(configMap['data']);
  const binaryData = fieldsOf(configMap['binaryData']);
  const errors: FieldError[] = [];
  for (const key of Object.keys(data)) {
    if (Object.hasOwn(binaryData, key))
      errors.push(invalid(`data[${key}]`, key, 'duplicate of key present in binaryData'));
  }
  const bytes = Object.values(data).reduce((sum: number, text) => sum + Buffer.byteLength(String(text)), 0);
  if (bytes + decodedBytes(binaryData) > LARGEST_CONTENT_BYTES) errors.push(tooLong('', LARGEST_CONTENT_BYTES));
  return errors;
}

function decodedBytes(data: Readonly<Record<string, unknown>>): number {
  return Object.values(data).reduce((sum: number, text) => sum + Buffer.byteLength(String(text), 'base64'), 0);
}

function isJsonObject(base64: unknown): boolean {
  try {
    return isObject(JSON.parse(Buffer.from(String(base64), 'base64').toString()));
  } catch {
    return false;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}
