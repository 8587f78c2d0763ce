import type { KubeObject } from '../../kube/resource.ts';
import type { Fields, Kind, Occasion } from '../kinds/kind.ts';
import { prepareApproval } from '../kinds/rules/signing-request.ts';
import { noSuchPath } from '../status.ts';
import { type BodyKind, bodyKind } from './body.ts';
import { scaled, scaleOf } from './scale.ts';

/** One way to look at an object and to change it: the object itself, its status, its scale. */
export interface Endpoint {
  /** Empty for the object itself. */
  readonly subresource: string;
  readonly body: BodyKind;
  /** What a reader sees, and a patch is applied to. */
  read(object: KubeObject): KubeObject;
  /** The object to be stored, given what the writer sent: takes over what this endpoint may change and nothing else. */
  write(updated: Fields, old: Fields, occasion: Occasion): Fields;
  /** The fields this endpoint leaves alone, for field ownership. */
  readonly resetFields: readonly string[][];
}

/** Throws 404 for a subresource the kind does not have. */
export function endpointOf(kind: Kind, subresource: string): Endpoint {
  switch (subresource) {
    case '':
      return mainEndpoint(kind);
    case 'status':
      if (kind.status) return statusEndpoint(kind);
      break;
    case 'scale':
      if (kind.scale !== undefined) return scaleEndpoint(kind);
      break;
    case 'approval':
      return { ...plain(kind, 'approval'), write: prepareApproval, resetFields: [['spec']] };
    case 'finalize':
      return { ...plain(kind, 'finalize'), write: withStatusOf, resetFields: [['status']] };
  }
  throw noSuchPath();
}

function mainEndpoint(kind: Kind): Endpoint {
  return {
    ...plain(kind, ''),
    write: (updated, old, occasion) => {
      const kept = kind.status ? withStatusOf(updated, old) : updated;
      return kind.rules.prepareUpdate?.(kept, old, occasion) ?? kept;
    },
    resetFields: kind.status ? [['status']] : [],
  };
}

function statusEndpoint(kind: Kind): Endpoint {
  return {
    ...plain(kind, 'status'),
    write: (updated, old, occasion) => {
      const { status: _, ...rest } = old;
      const metadata = kind.rules.statusWritesMetadata === true ? updated.metadata : statusMetadata(updated, old);
      const merged = {
        ...rest,
        metadata,
        ...(updated.status === undefined ? {} : { status: updated.status }),
      } as Fields;
      return kind.rules.prepareStatus?.(merged, old, occasion) ?? merged;
    },
    resetFields: kind.rules.statusWritesMetadata === true ? [['spec']] : [['spec'], ['metadata', 'labels']],
  };
}

function scaleEndpoint(kind: Kind): Endpoint {
  return {
    subresource: 'scale',
    body: scaleBody(kind),
    read: object => scaleOf(kind, object),
    write: (updated, old) => scaled(kind, updated, old),
    resetFields: [],
  };
}

function scaleBody(kind: Kind): BodyKind {
  const schema = kind.subresources.find(({ name }) => name === 'scale')?.schema ?? {};
  return { group: 'autoscaling', version: 'v1', kind: 'Scale', schema, custom: false };
}

function plain(kind: Kind, subresource: string): Pick<Endpoint, 'subresource' | 'body' | 'read'> {
  return { subresource, body: bodyKind(kind), read: object => object };
}

function withStatusOf(updated: Fields, old: Fields): Fields {
  const { status: _, ...rest } = updated;
  return old.status === undefined ? rest : { ...rest, status: old.status };
}

/** Only ownership and the version that was read come with a status. */
function statusMetadata({ metadata }: Fields, old: Fields): Fields['metadata'] {
  const { managedFields: _, ...kept } = old.metadata ?? {};
  return metadata?.managedFields === undefined ? kept : { ...kept, managedFields: metadata.managedFields };
}
