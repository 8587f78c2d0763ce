import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Agent, request as send } from 'node:https';
import type { Access, Connection } from '../kube/access.ts';
import { HttpKube } from '../kube/client.ts';
import { loadAccess } from '../kube/kubeconfig.ts';
import { publishAuthentication } from './kubeadm/authentication.ts';
import { type ShownClient, type StandInOptions, StandInServer } from './stand-in-server.ts';

/** A kubeconfig: where the API is that a kube-apiserver which only stands in passes requests on to. */
export const FRONTED_API = 'ROTUNDA_FRONTED_API';

/** Of a connection, and not of what is said over it. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const IMPERSONATION = /^impersonate-/;

interface Server {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A kube-apiserver without a store: it lets clients in by the files of its flags, as the real one does, and what they ask is asked of the
 * API behind it in their name.
 */
export function frontServer(options: StandInOptions, kubeconfig: string): Server {
  const { log } = options;
  let access: Access | undefined;
  let kube: HttpKube | undefined;
  const agent = new Agent({ keepAlive: true });
  const answer: StandInOptions['answer'] = (_path, response, request, client) => {
    if (access === undefined) return false;
    void passOn(access, agent, request, response, client).catch((err: unknown) => {
      log.warn({ err }, 'a request could not be passed on');
      refuse(response, 503, 'ServiceUnavailable', 'the API behind this server does not answer');
    });
    return true;
  };
  const publish = () => {
    if (kube === undefined) return;
    const texts = {
      'client-ca-file': server.text('client-ca'),
      'requestheader-client-ca-file': server.text('requestheader-client-ca'),
    };
    publishAuthentication(kube, texts).catch((err: unknown) =>
      log.warn({ err }, 'what is loaded could not be published'),
    );
  };
  const server: StandInServer = new StandInServer({ ...options, answer, onLoaded: publish });
  return {
    async start() {
      access = await loadAccess({ path: kubeconfig });
      kube = new HttpKube(access, { fieldManager: 'kube-apiserver' });
      await server.start();
    },
    async stop() {
      await server.stop();
      agent.destroy();
      await kube?.close();
    },
  };
}

async function passOn(
  access: Access,
  agent: Agent,
  request: IncomingMessage,
  response: ServerResponse,
  client: ShownClient | undefined,
): Promise<void> {
  const { authorization } = request.headers;
  const isKnown = client?.trusted === true;
  if (client !== undefined && !isKnown && authorization === undefined)
    return refuse(response, 401, 'Unauthorized', 'Unauthorized');
  if (isKnown && Object.keys(request.headers).some(name => IMPERSONATION.test(name)))
    return refuse(response, 501, 'NotImplemented', 'a kube-apiserver that only stands in impersonates nobody else');
  const connection = await access.connection();
  // Who has a certificate is asked for by name, with the rights of whoever may do that; all others show what they have themselves.
  const { certificate, key } = isKnown ? connection.tls : {};
  const identity = isKnown ? identityOf(client) : authorization === undefined ? {} : { authorization };
  await exchange(connection, { agent, cert: certificate, key }, identity, request, response);
}

function identityOf({ certificate: { subject } }: ShownClient): IncomingHttpHeaders {
  return {
    'impersonate-user': subject.commonName,
    // What is without groups would get none of its own.
    ...(subject.organizations.length > 0 && { 'impersonate-group': [...subject.organizations] as never }),
  };
}

function exchange(
  { server, tls }: Connection,
  credentials: { readonly agent: Agent; readonly cert?: string | undefined; readonly key?: string | undefined },
  identity: IncomingHttpHeaders,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const kept = Object.entries(request.headers).filter(
    ([name]) => !HOP_BY_HOP.has(name) && name !== 'host' && name !== 'authorization' && !IMPERSONATION.test(name),
  );
  return new Promise((resolve, reject) => {
    const passed = send(
      {
        host: server.hostname,
        port: server.port,
        path: request.url,
        method: request.method,
        headers: { ...Object.fromEntries(kept), ...identity },
        ca: tls.ca,
        servername: tls.serverName,
        ...credentials,
      },
      answer => {
        const headers = Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.has(name));
        response.writeHead(answer.statusCode ?? 502, Object.fromEntries(headers));
        // A watch says that it has begun before it has anything to tell.
        response.flushHeaders();
        answer.pipe(response);
        answer.once('error', error => response.destroy(error));
        answer.once('end', resolve);
      },
    );
    passed.once('error', error => {
      if (response.headersSent) response.destroy(error);
      reject(error);
    });
    response.once('close', () => {
      passed.destroy();
      resolve();
    });
    request.pipe(passed);
  });
}

function refuse(response: ServerResponse, code: number, reason: string, message: string): void {
  if (response.headersSent) return;
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
  response
    .writeHead(code, { 'content-type': 'application/json', 'x-rotunda-stand-in': 'true' })
    .end(JSON.stringify(status));
}
