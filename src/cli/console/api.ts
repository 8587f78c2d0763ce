import type { IncomingMessage, ServerResponse } from 'node:http';
import { etcdTrust } from '../../etcd/trust.ts';
import type { Clock } from '../../kube/clock.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import { joinGraphs } from '../../trust/graph.ts';
import { actionFrom, performAction, previewAction } from './actions.ts';
import { detailOf } from './detail.ts';
import { Guesses } from './guesses.ts';
import { cookieOf, HttpProblem, readJson, sendJson } from './http.ts';
import { isToken } from './identity.ts';
import type { SessionInfo } from './model.ts';
import { planFor } from './plan.ts';
import type { Principals } from './principals.ts';
import { isSameText, type Principal, SESSION_MS, type Session, type Sessions } from './sessions.ts';
import { streamModel } from './stream.ts';

export interface ApiOptions {
  readonly sessions: Sessions;
  readonly principals: Principals;
  readonly clock: Clock;
  readonly isTls: boolean;
  readonly port: number;
}

const TRUST = joinGraphs(kubeApiserverTrust(), etcdTrust());

type Route = (call: {
  request: IncomingMessage;
  response: ServerResponse;
  url: URL;
  session: Session;
}) => Promise<void>;

/** The JSON side of the console. Everything but logging in needs a session. */
export class Api {
  readonly #options: ApiOptions;
  readonly #cookieName: string;
  readonly #guesses: Guesses;

  constructor(options: ApiOptions) {
    this.#options = options;
    this.#guesses = new Guesses(options.clock);
    // Cookies know no ports: two consoles on one machine must not take each other's.
    this.#cookieName = options.isTls ? `__Host-rotunda-${options.port}` : `rotunda-${options.port}`;
  }

  async answer(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const { method = 'GET' } = request;
    const name = `${method} ${url.pathname.replace(/^(\/api\/actions\/|\/api\/objects\/).+$/, '$1')}`;
    if (name === 'POST /api/login') return this.#logIn(request, response);
    const session = this.#options.sessions.find(cookieOf(request, this.#cookieName));
    if (session === undefined) throw new HttpProblem(401, 'log in first');
    const route = this.#routes[name];
    if (route === undefined) throw new HttpProblem(404, 'there is no such thing');
    if (method !== 'GET' && !isSameText(String(request.headers['x-rotunda-csrf'] ?? ''), session.csrf)) {
      throw new HttpProblem(403, 'the token of this session is missing');
    }
    await route({ request, response, url, session });
  }

  readonly #routes: Readonly<Record<string, Route>> = {
    'GET /api/session': async ({ response, session }) => sendJson(response, 200, infoOf(session)),
    'GET /api/live': ({ request, response, session }) => streamModel(request, response, session),
    'GET /api/snapshot': async ({ response, session }) => {
      await session.principal.feed.start();
      sendJson(response, 200, JSON.parse(session.principal.feed.snapshot().data));
    },
    'GET /api/trust': async ({ response }) => sendJson(response, 200, TRUST),
    'GET /api/objects/': async ({ response, url, session }) => {
      const [, kind, namespace = '', name = ''] =
        /^\/api\/objects\/(secret|configmap)\/([^/]+)\/([^/]+)$/.exec(url.pathname) ?? [];
      if (kind === undefined)
        throw new HttpProblem(404, 'expected /api/objects/<secret or configmap>/<namespace>/<name>');
      const { feed } = session.principal;
      await feed.start();
      const detail = await detailOf(feed.source, { kind: kind === 'secret' ? 'Secret' : 'ConfigMap', namespace, name });
      if (detail === undefined) throw new HttpProblem(404, `there is no such ${kind}`);
      sendJson(response, 200, detail);
    },
    'GET /api/plan': async ({ response, url, session }) => {
      const { feed } = session.principal;
      await feed.start();
      sendJson(response, 200, await planFor(feed, url.searchParams.get('days') ?? '30', this.#options.clock.now()));
    },
    'POST /api/actions': async ({ request, response, session }) => {
      const action = actionFrom(await readJson(request));
      if (action === undefined) throw new HttpProblem(400, 'that is no action this console knows');
      await session.principal.feed.start();
      sendJson(response, 200, await previewAction(session, action, this.#options.clock.now()));
    },
    'POST /api/actions/': async ({ request, response, url, session }) => {
      const id = url.pathname.slice('/api/actions/'.length);
      const action = session.previews.get(id);
      if (action === undefined) throw new HttpProblem(409, 'look at its plan first');
      const { overrideGate } = ((await readJson(request)) ?? {}) as { overrideGate?: unknown };
      session.previews.delete(id);
      const chosen = action.kind === 'regenerate' ? { ...action, overrideGate: overrideGate === true } : action;
      sendJson(response, 200, await performAction(session, chosen, this.#options.clock.now()));
    },
    'POST /api/logout': async ({ response, session }) => {
      this.#options.sessions.end(session);
      response.setHeader('set-cookie', this.#cookie('', 0));
      sendJson(response, 200, {});
    },
  };

  async #logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { sessions, principals } = this.#options;
    const { link, token } = ((await readJson(request)) ?? {}) as { link?: unknown; token?: unknown };
    // Nobody guesses a link; whoever has a good one gets in, whatever others are trying, and has a place for certain.
    const isLinkGood = isToken(link) && sessions.useLink(link);
    const principal = isLinkGood
      ? await principals.owner()
      : await this.#checkToken(token, request.socket.remoteAddress ?? '');
    if (principal === undefined) {
      throw new HttpProblem(
        401,
        link === undefined ? 'the cluster does not know this token' : 'this link was used already or is too old',
      );
    }
    const opened = sessions.open(principal);
    if (opened === undefined) throw new HttpProblem(429, 'too many sessions are open');
    response.setHeader('set-cookie', this.#cookie(opened.cookie, SESSION_MS));
    sendJson(response, 200, infoOf(opened.session));
  }

  async #checkToken(token: unknown, address: string): Promise<Principal | undefined> {
    if (!isToken(token)) return undefined;
    const guess = this.#guesses.begin(address);
    if (guess === undefined) throw new HttpProblem(429, 'too many failed attempts; wait a minute');
    let isWrong = false;
    try {
      const principal = await this.#options.principals.ofToken(token);
      isWrong = principal === undefined;
      return principal;
    } finally {
      // A cluster that does not answer has not called the token wrong.
      if (!isWrong) guess.undo();
    }
  }

  #cookie(value: string, lifetimeMs: number): string {
    const secure = this.#options.isTls ? '; Secure' : '';
    return `${this.#cookieName}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${lifetimeMs / 1000}${secure}`;
  }
}

function infoOf({ principal: { identity }, csrf, expiresAt }: Session): SessionInfo {
  return { ...identity, csrf, expiresAt: expiresAt.toISOString() };
}
