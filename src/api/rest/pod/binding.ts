import type { Binding, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Status } from 'kubernetes-types/meta/v1.d.ts';
import type { KubeObject } from '../../../kube/resource.ts';
import { type Fields, pathOf } from '../../kinds/kind.ts';
import { invalidObject, required, unsupported } from '../../schema/field-error.ts';
import { badRequest, conflict } from '../../status.ts';
import { amend } from '../amend.ts';
import type { Call, Core } from '../core.ts';
import { withCondition } from './condition.ts';

/** Puts a pod on a node. A pod is bound once. */
export async function bind(core: Core, call: Call, body: KubeObject, dryRun: boolean): Promise<Status> {
  const { metadata, target } = body as Binding;
  if ((metadata?.name ?? call.name) !== call.name)
    throw badRequest('name in URL does not match name in Binding object');
  if (target?.kind && target.kind !== 'Node') {
    throw invalidObject('', 'Binding', call.name, [unsupported('target.kind', target.kind, ['Node', '<empty>'])]);
  }
  if (!target?.name) throw invalidObject('', 'Binding', call.name, [required('target.name')]);
  const nodeName = target.name;
  const assign = (object: Fields): Fields => {
    const why = whyNotBound(object as Pod, metadata?.uid);
    if (why !== undefined) throw conflict({ group: '', plural: 'pods/binding' }, call.name, why);
    const annotations = { ...object.metadata?.annotations, ...metadata?.annotations };
    const named = Object.keys(annotations).length === 0 ? object.metadata : { ...object.metadata, annotations };
    const bound = { ...(object as Pod), metadata: named, spec: { ...(object as Pod).spec, nodeName } } as Pod;
    return withCondition(bound, { type: 'PodScheduled', status: 'True' }, core.clock.now()) as Fields;
  };
  await amend(core, call.kind, pathOf(call.namespace, call.name), assign, dryRun);
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
}

function whyNotBound({ metadata, spec }: Pod, uid: string | undefined): string | undefined {
  const name = metadata?.name ?? '';
  if (uid && uid !== metadata?.uid) {
    return `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata?.uid ?? ''}`;
  }
  if (metadata?.deletionTimestamp !== undefined) return `pod ${name} is being deleted, cannot be assigned to a host`;
  if (spec?.nodeName) return `pod ${name} is already assigned to node "${spec.nodeName}"`;
  if ((spec?.schedulingGates?.length ?? 0) > 0) return `pod ${name} has non-empty .spec.schedulingGates`;
  return undefined;
}
