import type { ObjectRef } from '../trust/object.ts';
import { UsageError } from './usage-error.ts';

const KINDS: Readonly<Record<string, ObjectRef['kind']>> = {
  secret: 'Secret',
  secrets: 'Secret',
  configmap: 'ConfigMap',
  configmaps: 'ConfigMap',
  cm: 'ConfigMap',
};

/** Reads `KIND/NAMESPACE/NAME`, or `KIND/NAME` where the namespace is given elsewhere. */
export function objectRefFrom(flag: string, text: string, namespace?: string): ObjectRef {
  const parts = text.split('/');
  const kind = KINDS[(parts[0] ?? '').toLowerCase()];
  const [place, name] = parts.length === 3 ? [parts[1], parts[2]] : parts.length === 2 ? [namespace, parts[1]] : [];
  if (kind === undefined || !place || !name) {
    throw new UsageError(`${flag} must be secret/<namespace>/<name> or configmap/<namespace>/<name>, found "${text}"`);
  }
  return { kind, namespace: place, name };
}
