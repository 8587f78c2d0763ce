import { KubeError } from '../../kube/error.ts';
import { type Attributes, isPathRequest, resourceAndSubresource } from './attributes.ts';

/** 403 for a request nobody allowed: `secrets "x" is forbidden: User "u" cannot get resource "secrets" in API group ...`. */
export function forbiddenError(attributes: Attributes, reason = ''): KubeError {
  const denial = escapeMarkup(denialText(attributes));
  const message = reason === '' ? denial : `${denial}: ${reason}`;
  if (isPathRequest(attributes)) return new KubeError(403, 'Forbidden', `forbidden: ${message}`, {});
  return forbiddenObject(attributes.group, attributes.resource, attributes.name, message);
}

/** 403 for an object that a rule other than authorization refuses: `pods "x" is forbidden: <why>`. */
export function forbiddenObject(group: string, resource: string, name: string, why: string): KubeError {
  const qualified = group === '' ? resource : `${resource}.${group}`;
  const subject = name === '' ? qualified : `${qualified} ${JSON.stringify(name)}`;
  return new KubeError(403, 'Forbidden', `${subject} is forbidden: ${why}`, {
    ...(name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    kind: resource,
  });
}

/** 401 for a request without credentials that hold. It never says what was wrong with them. */
export function unauthorizedError(): KubeError {
  return new KubeError(401, 'Unauthorized', 'Unauthorized');
}

function denialText(attributes: Attributes): string {
  const user = `User ${JSON.stringify(attributes.user.name)} cannot ${attributes.verb}`;
  if (isPathRequest(attributes)) return `${user} path ${JSON.stringify(attributes.path)}`;
  const resource = JSON.stringify(resourceAndSubresource(attributes));
  const place =
    attributes.namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(attributes.namespace)}`;
  return `${user} resource ${resource} in API group ${JSON.stringify(attributes.group)} ${place}`;
}

/** The text repeats what the client sent; a browser must not read it as HTML. */
function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
