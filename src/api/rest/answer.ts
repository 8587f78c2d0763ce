import type { KubeObject } from '../../kube/resource.ts';
import type { Kind } from '../kinds/kind.ts';
import { apiVersionOfKind } from '../kinds/kind.ts';
import { noSuchPath } from '../status.ts';
import { type Body, type BodyKind, bodyKind, readObject } from './body.ts';
import type { Call, Core, WriteParameters } from './core.ts';
import { bind } from './pod/binding.ts';
import { evict } from './pod/eviction.ts';
import { review } from './review.ts';
import { requestToken } from './token.ts';

/** POST to something that stores no object of its own: reviews, bindings, evictions, token requests. */
export async function answer(core: Core, call: Call, body: Body, parameters: WriteParameters): Promise<object> {
  const { kind, subresource } = call;
  const read = (expected: BodyKind) => readObject(expected, body, parameters.fieldValidation, call.warn);
  if (subresource === '') {
    const object = read(bodyKind(kind));
    return kind.plural === 'bindings' ? bindNamed(core, call, object, parameters.dryRun) : review(core, call, object);
  }
  const expected = subresourceKind(kind, subresource, body);
  switch (`${kind.plural}/${subresource}`) {
    case 'pods/binding':
      return bind(core, call, read(expected), parameters.dryRun);
    case 'pods/eviction':
      return evict(core, call, read(expected), parameters.dryRun);
    case 'serviceaccounts/token':
      return requestToken(core, call, read(expected));
    default:
      throw noSuchPath();
  }
}

function bindNamed(core: Core, call: Call, object: KubeObject, dryRun: boolean): Promise<object> {
  const pods = core.registry.find('', 'v1', 'pods') as Kind;
  return bind(core, { ...call, kind: pods, name: object.metadata?.name ?? '' }, object, dryRun);
}

function subresourceKind(kind: Kind, subresource: string, body: Body): BodyKind {
  const found = kind.subresources.find(({ name }) => name === subresource);
  if (found?.kind === undefined) throw noSuchPath();
  const { group, version, kind: name } = found.kind;
  // Old clients still send the beta version of an Eviction, which looks the same.
  const beta = (body.value as KubeObject | null)?.apiVersion === `${group}/v1beta1` && subresource === 'eviction';
  const expected = { group, version: beta ? 'v1beta1' : version, kind: name };
  if (found.schema === undefined) throw new Error(`no schema for ${name} of ${apiVersionOfKind(expected)}`);
  return { ...expected, schema: found.schema, custom: false };
}
