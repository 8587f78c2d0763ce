import type { User } from '../auth/user.ts';
import { SYSTEM_MASTERS, serviceAccountUser } from '../auth/user.ts';
import type { Kind } from '../kinds/kind.ts';
import type { Call } from '../rest/core.ts';

/** Something inside the server that watches the store and acts on what it sees. */
export interface Controller {
  /** Resolves when it has nothing to do any more. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/** A call the server makes on its own behalf. */
export function internalCall(kind: Kind, namespace: string, name: string, controller: string): Call {
  return { user: controllerUser(controller), kind, namespace, name, subresource: '', warn: () => {} };
}

function controllerUser(controller: string): User {
  const user = serviceAccountUser('kube-system', controller, '');
  return { ...user, groups: [...user.groups, SYSTEM_MASTERS] };
}

/** Splits the path of an object in its bucket. */
export function splitPath(kind: Kind, path: string): { namespace: string; name: string } {
  const slash = kind.namespaced ? path.indexOf('/') : -1;
  return { namespace: slash < 0 ? '' : path.slice(0, slash), name: path.slice(slash + 1) };
}
