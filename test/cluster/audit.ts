import { readFileSync } from 'node:fs';

/** One request as kube-apiserver saw it. */
export interface Access {
  readonly user: string;
  readonly verb: string;
  readonly group: string;
  /** With the subresource: `pods/eviction`. */
  readonly resource: string;
  /** Empty for what has none, and for lists over all of them. */
  readonly namespace: string;
  /** Empty where the request names no object. */
  readonly name: string;
  readonly code: number;
  readonly at: Date;
}

interface AuditEvent {
  readonly auditID: string;
  readonly stage: string;
  readonly verb: string;
  readonly user?: { readonly username?: string };
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly requestReceivedTimestamp: string;
}

/** The requests for objects that one user has made so far, each once. */
export function readAccesses(auditLog: string, user: string): Access[] {
  const byId = new Map<string, Access>();
  for (const line of readFileSync(auditLog, 'utf8').split('\n')) {
    // The last line may be half written.
    if (!line.endsWith('}') || !line.includes(user)) continue;
    const event = JSON.parse(line) as AuditEvent;
    const { objectRef: object, stage, auditID, verb } = event;
    if (event.user?.username !== user || object?.resource === undefined || stage === 'RequestReceived') continue;
    byId.set(auditID, {
      user,
      verb,
      group: object.apiGroup ?? '',
      resource: object.subresource === undefined ? object.resource : `${object.resource}/${object.subresource}`,
      // Of a namespace itself, kube-apiserver says that it is in itself.
      namespace: object.resource === 'namespaces' ? '' : (object.namespace ?? ''),
      name: object.name ?? '',
      code: event.responseStatus?.code ?? 0,
      at: new Date(event.requestReceivedTimestamp),
    });
  }
  return [...byId.values()];
}

export function accountName({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

export function describeAccess({ verb, group, resource, namespace, name }: Access): string {
  const kind = group === '' ? resource : `${resource}.${group}`;
  return `${verb} ${kind}${name === '' ? '' : ` ${name}`}${namespace === '' ? '' : ` in ${namespace}`}`;
}
