/** An object of the cluster that carries keys, certificates or trust. */
export interface ObjectRef {
  readonly kind: 'Secret' | 'ConfigMap';
  readonly namespace: string;
  readonly name: string;
}

export function secret(namespace: string, name: string): ObjectRef {
  return { kind: 'Secret', namespace, name };
}

export function configMap(namespace: string, name: string): ObjectRef {
  return { kind: 'ConfigMap', namespace, name };
}

/** `secret/<namespace>/<name>`: one text for one object, also good as a key. */
export function objectText({ kind, namespace, name }: ObjectRef): string {
  return `${kind.toLowerCase()}/${namespace}/${name}`;
}

export function isSameObject(a: ObjectRef, b: ObjectRef): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name;
}
