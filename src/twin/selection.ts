import type { Selection } from '../kube/port.ts';
import type { KubeObject } from '../kube/resource.ts';

/** Whether an object is in what somebody lists or watches. The selectors are those that our controllers use; others throw. */
export function selects({ namespace, labelSelector, fieldSelector }: Selection, object: KubeObject): boolean {
  const { metadata = {} } = object;
  if (namespace !== undefined && metadata.namespace !== namespace) return false;
  for (const term of termsOf(labelSelector)) {
    const [name = '', value] = term.split('=');
    if (/[!() ]/.test(term)) throw new RangeError(`the twin's API does not know the label selector ${term}`);
    if (!(name in (metadata.labels ?? {})) || (value !== undefined && metadata.labels?.[name] !== value)) return false;
  }
  for (const term of termsOf(fieldSelector)) {
    const [name = '', value] = term.split('=');
    if (name === 'metadata.name') {
      if (metadata.name !== value) return false;
    } else if (name === 'spec.nodeName') {
      if ((object as { spec?: { nodeName?: string } }).spec?.nodeName !== value) return false;
    } else throw new RangeError(`the twin's API does not know the field selector ${term}`);
  }
  return true;
}

function termsOf(selector: string | undefined): string[] {
  return selector === undefined || selector === '' ? [] : selector.split(',');
}
