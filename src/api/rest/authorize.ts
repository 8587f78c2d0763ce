import type { Attributes } from '../auth/attributes.ts';
import type { Authorizer } from '../auth/authorize.ts';
import { forbiddenError } from '../auth/forbidden.ts';
import type { Call, Core } from './core.ts';

/** Throws 403 unless the user of the call may use this verb. */
export function authorize(core: Core, { user, kind, namespace, name, subresource }: Call, verb: string): void {
  const { group, version, plural } = kind;
  requireAllowed(core.authorizer, { user, verb, ...asked({ group, version, plural, namespace, name, subresource }) });
}

/** Throws 403 unless the authorizer allows it. */
export function requireAllowed(authorizer: Authorizer, attributes: Attributes): void {
  const { verdict, reason } = authorizer.authorize(attributes);
  if (verdict !== 'allow') throw forbiddenError(attributes, reason);
}

interface Asked {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

/** What is asked for, in the words of authorization. A namespace counts as being inside itself, so that a role in it can speak of it. */
export function asked({ plural, ...rest }: Asked): Omit<Asked, 'plural'> & { resource: string } {
  const isNamespace = rest.group === '' && plural === 'namespaces' && rest.name !== '';
  return { ...rest, resource: plural, ...(isNamespace ? { namespace: rest.name } : {}) };
}
