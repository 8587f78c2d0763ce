import { isObject } from '../schema/json.ts';
import { badRequest } from '../status.ts';

/** Where the next page of a list begins. */
export interface Continuation {
  /** The revision all pages show; undefined: whatever is there now. */
  readonly revision: number | undefined;
  /** The path of the last object of the page before. */
  readonly after: string;
}

const FORMAT = 'meta.k8s.io/v1';
/** Stands for "whatever is there now". */
const INCONSISTENT = -1;

/** A token clients send back as it is. */
export function formatContinue({ revision, after }: Continuation): string {
  const token = { v: FORMAT, rv: revision ?? INCONSISTENT, start: `${after}\u0000` };
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

export function readContinue(token: string): Continuation {
  const fields = decoded(token);
  const { v, rv, start } = isObject(fields) ? fields : {};
  if (v !== FORMAT) throw refused('server does not recognize this encoded version');
  if (typeof start !== 'string' || !start.endsWith('\u0000')) throw refused('incorrect encoded start');
  if (!Number.isSafeInteger(rv) || rv === 0) throw refused('incorrect encoded start resourceVersion');
  return { revision: rv === INCONSISTENT ? undefined : (rv as number), after: start.slice(0, -1) };
}

function decoded(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token, 'base64url').toString('utf8'));
  } catch {
    throw refused('it is not JSON in base64');
  }
}

function refused(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`);
}
