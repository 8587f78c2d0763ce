import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { Condition } from '../../../src/controller/condition.ts';
import { KubeError } from '../../../src/kube/error.ts';
import type { RecordedEvent } from '../../../src/kube/events.ts';
import { formatRfc3339 } from '../../../src/kube/time.ts';
import { type NodeStatus, readNodeStatus } from '../../../src/staticpod/node-status.ts';
import { NOW } from '../../../src/staticpod/testing.ts';

// The vectors are loosely typed data; each adapter says what it expects of its kind.
// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any;

export interface Case {
  readonly id: string;
  readonly kind: string;
  readonly given: Json;
  readonly expected: Json;
  readonly expectedHardened?: Json;
}

/** Runs one case of its kind. `expected` is what the specification asks for, defects of 4.16 corrected. */
export type Adapter = (given: Json, expected: Json, t: TestContext) => void | Promise<void>;

export function secondsAgo(age: number | undefined): Date | undefined {
  return age === undefined ? undefined : new Date(NOW.getTime() - age * 1000);
}

export function timeAgo(age: number | undefined): string | undefined {
  const time = secondsAgo(age);
  return time && formatRfc3339(time);
}

export function nodesOf(entries: Json): NodeStatus[] {
  return (entries ?? []).map(readNodeStatus);
}

/** A ConfigMap or Secret of the vectors, whose Secret values are plain text. */
export function objectOf(given: Json, namespace: string): ConfigMap | Secret {
  const { kind = 'ConfigMap', name, labels, annotations, data, binaryData, type } = given;
  const metadata = { namespace: given.namespace ?? namespace, name, ...defined({ labels, annotations }) };
  if (kind !== 'Secret') return { kind, metadata, ...defined({ data: texts(data), binaryData }) };
  return { kind, metadata, type: type ?? 'Opaque', ...defined({ data: base64(data) }) };
}

/** A value that is not text stands for a serialised manifest. */
function texts(data: Json): Record<string, string> | undefined {
  if (data === undefined) return undefined;
  const entries = Object.entries(data).map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]);
  return Object.fromEntries(entries);
}

export function base64(data: Json): Record<string, string> | undefined {
  if (data === undefined || data === null) return undefined;
  return Object.fromEntries(Object.entries(texts(data) ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));
}

export function defined<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)) as never;
}

/** An operand pod as the vectors describe it. */
export function operandFrom(given: Json, namespace: string, name: string): Pod {
  const { revision, phase = 'Running', ready, message, annotations, creationTimestamp, readyConditionAgeSeconds } = given;
  const condition = {
    type: 'Ready',
    status: ready ? 'True' : 'False',
    lastTransitionTime: timeAgo(readyConditionAgeSeconds ?? 3600),
  };
  return {
    kind: 'Pod',
    metadata: {
      namespace,
      name,
      creationTimestamp: creationTimestamp ?? timeAgo(7200),
      ...defined({ annotations, labels: revision === undefined ? undefined : { revision } }),
    },
    status: {
      phase,
      ...defined({ message, initContainerStatuses: given.initContainerStatuses, containerStatuses: given.containerStatuses }),
      ...(ready === undefined ? {} : { conditions: [condition] }),
    },
  } as Pod;
}

export function errorOf(text: string): KubeError {
  if (/cannot be fulfilled|has been modified|^conflict$/i.test(text)) return new KubeError(409, 'Conflict', text);
  if (/not found/i.test(text)) return new KubeError(404, 'NotFound', text);
  if (/already exists/i.test(text)) return new KubeError(409, 'AlreadyExists', text);
  return new KubeError(500, 'InternalError', text);
}

/** Conditions are matched by type; absent texts are empty. */
export function checkConditions(found: readonly Condition[] | undefined, expected: Json): void {
  for (const wanted of Array.isArray(expected) ? expected : byType(expected)) {
    const condition = found?.find(({ type }) => type === wanted.type);
    assert.ok(condition, `condition ${wanted.type} is missing`);
    if (wanted.status !== undefined) assert.equal(condition.status, wanted.status, `${wanted.type} ${condition.message}`);
    if (wanted.reason !== undefined) assert.equal(condition.reason ?? '', wanted.reason, wanted.type);
    if (wanted.message !== undefined) assert.equal(condition.message ?? '', wanted.message, wanted.type);
    for (const part of [wanted.messageContains ?? []].flat()) {
      assert.ok(condition.message?.includes(part), `${wanted.type}: "${condition.message}" does not contain "${part}"`);
    }
  }
}

/** `{ type: status }` or `{ type: { status, reason } }`. */
function byType(expected: Json): Json[] {
  return Object.entries(expected).map(([type, value]) => (typeof value === 'string' ? { type, status: value } : { type, ...(value as object) }));
}

/** Events are a list of events, of reasons, or a number. */
export function checkEvents(found: readonly RecordedEvent[], expected: Json): void {
  if (typeof expected === 'number') {
    assert.equal(found.length, expected);
    return;
  }
  assert.equal(found.length, expected.length, JSON.stringify(found));
  for (const [index, wanted] of expected.entries()) checkEvent(found[index], wanted);
}

export function checkEvent(found: RecordedEvent | undefined, wanted: Json): void {
  assert.ok(found, `event ${JSON.stringify(wanted)} is missing`);
  if (typeof wanted === 'string') assert.equal(found.reason, wanted);
  else for (const field of ['type', 'reason', 'message'] as const) if (wanted[field] !== undefined) assert.equal(found[field], wanted[field]);
}

/** `null` = no error, `true` = any, a text = this one. */
export function checkError(error: Error | undefined, expected: Json): void {
  if (expected === undefined) return;
  if (expected === null || expected === false) assert.equal(error?.message, undefined);
  else if (expected === true) assert.ok(error, 'expected an error');
  else assert.equal(error?.message, expected);
}

export async function attempt(work: () => unknown): Promise<Error | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    assert.ok(error instanceof Error);
    return error;
  }
}
