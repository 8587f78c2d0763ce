import type { SessionInfo } from '../src/cli/console/model.ts';

/** The server refused; the message is for the user. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

let csrf = '';

/** Whoever is logged in; undefined when nobody is. */
export async function currentSession(): Promise<SessionInfo | undefined> {
  try {
    return remember(await getJson<SessionInfo>('api/session'));
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return undefined;
    throw error;
  }
}

/** Logs in with a link of the console or with a token of the cluster. */
export async function logIn(credentials: { link: string } | { token: string }): Promise<SessionInfo> {
  return remember(await postJson<SessionInfo>('api/login', credentials));
}

export function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return ask<T>(path, signal === undefined ? {} : { signal });
}

export function postJson<T>(path: string, body: object): Promise<T> {
  const headers = { 'content-type': 'application/json', 'x-rotunda-csrf': csrf };
  return ask<T>(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function ask<T>(path: string, init: RequestInit): Promise<T> {
  const response = await fetch(path, { ...init, credentials: 'same-origin' });
  const answer = (await response.json().catch(() => ({}))) as { error?: string };
  if (!response.ok) throw new Refused(response.status, answer.error ?? `the server answered ${response.status}`);
  return answer as T;
}

function remember(session: SessionInfo): SessionInfo {
  ({ csrf } = session);
  return session;
}
