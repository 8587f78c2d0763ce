import type { KubeObject } from '../kube/resource.ts';
import { parseRfc3339 } from '../kube/time.ts';

/** An object of a file: named, of a kind, and of the shape its kind has. */
export type FileObject = KubeObject & { kind: string; metadata: { name: string } };

/** Where a value may be absent, `null` means the same. A list is written as the shape of its items in brackets. */
type Shape =
  | 'text'
  | 'required text'
  | 'number'
  | 'flag'
  | 'time'
  | 'texts'
  | 'anything'
  | readonly [Shape]
  | { readonly [field: string]: Shape };

const SELECTOR: Shape = {
  matchLabels: 'texts',
  matchExpressions: [{ key: 'required text', operator: 'required text', values: ['text'] }],
};
const CONDITIONS: Shape = [{ type: 'required text', status: 'text', reason: 'text', message: 'text' }];
const CONFIGURATION: Shape = { name: 'text', source: [{ name: 'text' }] };

/** What every object has. */
const OBJECT: Shape = {
  kind: 'required text',
  apiVersion: 'text',
  metadata: {
    name: 'required text',
    namespace: 'text',
    annotations: 'texts',
    labels: 'texts',
    creationTimestamp: 'time',
    ownerReferences: [{ kind: 'required text', name: 'required text' }],
  },
};

const STATIC_POD_OPERATOR: Shape = {
  spec: {},
  status: {
    latestAvailableRevision: 'number',
    nodeStatuses: [
      {
        nodeName: 'required text',
        currentRevision: 'number',
        targetRevision: 'number',
        lastFailedRevision: 'number',
        lastFailedRevisionErrors: ['text'],
      },
    ],
    conditions: CONDITIONS,
  },
};

/** What is read of the kinds that commands work with; of other kinds nothing is read. */
const KINDS: Readonly<Record<string, Shape>> = {
  Secret: { type: 'text', data: 'texts', stringData: 'texts' },
  ConfigMap: { data: 'texts' },
  Node: {
    spec: { unschedulable: 'flag' },
    status: {
      conditions: CONDITIONS,
      addresses: [{ type: 'text', address: 'text' }],
      nodeInfo: { kubeletVersion: 'text' },
    },
  },
  MachineConfig: { spec: { config: {}, osImageURL: 'text', kernelArguments: ['text'], extensions: ['text'] } },
  MachineConfigPool: {
    spec: {
      paused: 'flag',
      machineConfigSelector: SELECTOR,
      nodeSelector: SELECTOR,
      maxUnavailable: 'anything',
      configuration: CONFIGURATION,
    },
    status: {
      configuration: CONFIGURATION,
      machineCount: 'number',
      readyMachineCount: 'number',
      updatedMachineCount: 'number',
      unavailableMachineCount: 'number',
      degradedMachineCount: 'number',
      conditions: CONDITIONS,
    },
  },
  KubeAPIServer: STATIC_POD_OPERATOR,
  Etcd: STATIC_POD_OPERATOR,
  KubeControllerManager: STATIC_POD_OPERATOR,
  KubeScheduler: STATIC_POD_OPERATOR,
  Infrastructure: {
    status: {
      apiServerURL: 'text',
      apiServerInternalURI: 'text',
      apiServerInternalURL: 'text',
      controlPlaneTopology: 'text',
      infrastructureTopology: 'text',
      platform: 'text',
      platformStatus: { type: 'text' },
    },
  },
  Network: { status: { serviceNetwork: ['text'], clusterNetwork: [{ cidr: 'text' }] } },
};

/**
 * A document as an object whose fields are what its kind says; text: why it is none; undefined: it never was meant to be one. Files are
 * written by anybody, and one object of a wrong shape must not end the work on the others (spec 70, 9.8).
 */
export function objectFrom(document: unknown): FileObject | string | undefined {
  if (!isRecord(document) || typeof document.kind !== 'string' || !isRecord(document.metadata)) return undefined;
  const kind = Object.hasOwn(KINDS, document.kind) ? (KINDS[document.kind] as Shape) : {};
  const problem = problemOf(document, OBJECT, '') ?? problemOf(document, kind, '');
  if (problem === undefined) return withoutNulls(document) as unknown as FileObject;
  const { name } = document.metadata;
  return `${document.kind}${typeof name === 'string' ? ` "${name}"` : ''} is passed over: ${problem}`;
}

/** What is wrong with a value. Never repeats the value: it may be private. */
function problemOf(value: unknown, shape: Shape, path: string): string | undefined {
  const expected = (what: string) => `expected ${what} at ${path.slice(1) || 'the top'}, found ${kindOf(value)}`;
  if (value === undefined || value === null) return shape === 'required text' ? expected('a text') : undefined;
  if (typeof shape === 'string') return isScalar(value, shape) ? undefined : expected(WORDS[shape]);
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return expected('a list');
    for (const [index, item] of value.entries()) {
      const place = `${path}[${index}]`;
      const problem =
        item === null ? `expected an item at ${place.slice(1)}, found null` : problemOf(item, shape[0], place);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  if (!isRecord(value)) return expected('a map');
  for (const [field, inner] of Object.entries(shape)) {
    const problem = problemOf(value[field], inner, `${path}.${field}`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const WORDS = {
  text: 'a text',
  'required text': 'a text',
  number: 'a number',
  flag: 'true or false',
  time: 'a time',
  texts: 'a map of texts',
  anything: 'anything',
} as const;

function isScalar(value: unknown, shape: keyof typeof WORDS): boolean {
  switch (shape) {
    case 'text':
    case 'required text':
      return typeof value === 'string';
    case 'number':
      return typeof value === 'number';
    case 'flag':
      return typeof value === 'boolean';
    case 'time':
      // YAML readers may turn a time into a Date.
      return value instanceof Date || (typeof value === 'string' && parseRfc3339(value) !== undefined);
    case 'texts':
      return isRecord(value) && Object.values(value).every(text => typeof text === 'string');
    case 'anything':
      return true;
  }
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'a map' : `a ${typeof value}`;
}

/** Down to the fields of `metadata`, `spec` and `status`, `null` is the same as absent for Kubernetes. */
function withoutNulls(object: Record<string, unknown>, depth = 2): Record<string, unknown> {
  const present = Object.entries(object).filter(([, value]) => value !== null);
  return Object.fromEntries(
    present.map(([key, value]) => [key, depth > 1 && isRecord(value) ? withoutNulls(value, depth - 1) : value]),
  );
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
