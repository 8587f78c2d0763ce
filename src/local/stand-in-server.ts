import { X509Certificate } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttps, type Server as HttpsServer } from 'node:https';
import { createServer, type Server, type Socket } from 'node:net';
import { createSecureContext, type DetailedPeerCertificate, type SecureContext, type TLSSocket } from 'node:tls';
import type { Log } from '../controller/log.ts';
import { type Clock, systemClock } from '../kube/clock.ts';
import { minutes } from '../kube/duration.ts';
import { closeAtOnce, listenOn } from '../kube/listen.ts';
import { type Certificate, parseCertificate } from '../pki/certificate.ts';
import { verifyChain } from '../pki/chain.ts';
import { MAX_CHAIN_LENGTH } from '../pki/limits.ts';
import { readCertificates } from '../pki/pem.ts';
import { CLIENT_CHECK_PATH } from '../trust/handshake.ts';
import { FileWatch } from './file-watch.ts';
import type { ServerSettings, SniPair } from './stand-in-flags.ts';
import { type InputSpec, StandInInput } from './stand-in-input.ts';

export interface StandInOptions {
  readonly name: string;
  readonly settings: ServerSettings;
  readonly log: Log;
  readonly clock?: Clock | undefined;
  /** Answers paths of its own; false: not found. */
  readonly answer?:
    | ((path: string, response: ServerResponse, request: IncomingMessage, client: ShownClient | undefined) => boolean)
    | undefined;
  /** Told when something has been loaded, the first time included. */
  readonly onLoaded?: (() => void) | undefined;
}

/** What a client has shown of itself, and whether the client CAs, as they are loaded now, have signed it. */
export interface ShownClient {
  readonly certificate: Certificate;
  readonly trusted: boolean;
}

/** Besides watching (spec 20, section 7). */
const RECHECK_MS = minutes(1);
/** Where it says what it has loaded. */
export const LOADED_PATH = '/rotunda.dev/loaded';

/** A TLS server that reads its files when the real one would, serves health, and says what it has loaded. */
export class StandInServer {
  readonly #options: StandInOptions;
  readonly #startedAt: Date;
  readonly #inputs: StandInInput[];
  readonly #serving: StandInInput;
  readonly #sni: readonly { readonly pair: SniPair; readonly input: StandInInput }[];
  readonly #clientCa: StandInInput | undefined;
  /** Whose CAs clients are told of; that one of them has signed what a client shows does not let it in. */
  readonly #listed: readonly StandInInput[];
  readonly #watch: FileWatch;
  readonly #listeners: Server[] = [];
  readonly #default: HttpsServer;
  /** One for each named certificate: who connects to an address without naming a server is told by that address. */
  readonly #named: HttpsServer[];
  #contexts: { fallback: SecureContext; named: readonly { names: readonly string[]; context: SecureContext }[] };
  #isStopping = false;

  /** Throws when a file is missing or a key does not belong to its certificate: at the start that is fatal. */
  constructor(options: StandInOptions) {
    const { settings, clock = systemClock } = options;
    this.#options = options;
    this.#startedAt = clock.now();
    const input = (spec: InputSpec) => new StandInInput(spec, () => clock.now());
    const pair = (name: string, { cert, key }: { cert: string; key: string }) =>
      input({ name, kind: 'pair', paths: [cert, key], reload: settings.servingReload });
    this.#serving = pair('serving', settings.serving);
    this.#sni = settings.sni.map((sni, index) => ({ pair: sni, input: pair(`sni-${index}`, sni) }));
    this.#clientCa =
      settings.clientCa === undefined
        ? undefined
        : input({ name: 'client-ca', kind: 'bundle', paths: [settings.clientCa], reload: settings.clientCaReload });
    const others = settings.others.map(input);
    this.#listed = [
      ...(this.#clientCa ? [this.#clientCa] : []),
      ...others.filter(({ spec }) => spec.isListed === true),
    ];
    this.#inputs = [
      this.#serving,
      ...this.#sni.map(sni => sni.input),
      ...(this.#clientCa ? [this.#clientCa] : []),
      ...others,
    ];
    this.#contexts = this.#makeContexts();
    this.#default = this.#tlsServer(this.#serving);
    this.#named = this.#sni.map(sni => this.#tlsServer(sni.input));
    const watched = this.#inputs.filter(({ spec }) => spec.reload !== 'start').flatMap(({ spec }) => [...spec.paths]);
    this.#watch = new FileWatch(watched, () => this.reload('watch', 'handshake'), RECHECK_MS);
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    this.#watch.start();
    for (const { host, port } of this.#options.settings.listen) {
      const listener = createServer(socket => this.#accept(socket));
      await listenOn(listener, port, host);
      this.#listeners.push(listener);
      this.#options.log.info({ server: this.#options.name, address: listener.address() }, 'serving');
    }
    this.#options.onLoaded?.();
  }

  /** A file of an input, as it is loaded. */
  text(name: string, index = 0): string | undefined {
    return this.#inputs.find(({ spec }) => spec.name === name)?.text(index);
  }

  /** The ports it listens on. */
  ports(): number[] {
    return this.#listeners.map(listener => (listener.address() as { port: number }).port);
  }

  /** Takes no new connections, and ends the ones there are. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#watch.stop();
    await Promise.all(this.#listeners.map(closeAtOnce));
  }

  /** Reads again what is read at these occasions; what cannot be used leaves the old in place. */
  reload(...occasions: readonly InputSpec['reload'][]): void {
    let isNew = false;
    for (const input of this.#inputs) {
      if (!occasions.includes(input.spec.reload)) continue;
      const before = input.refused;
      if (input.reload()) {
        isNew = true;
        this.#options.log.info(
          { input: input.spec.name, loaded: input.report().certificates },
          loadedMessage(input.spec),
        );
      } else if (input.refused !== undefined && input.refused !== before) {
        this.#options.log.warn({ input: input.spec.name, why: input.refused }, 'change not taken, the old stays');
      }
    }
    if (!isNew) return;
    this.#contexts = this.#makeContexts();
    this.#default.setSecureContext(this.#material(this.#serving));
    for (const [index, { input }] of this.#sni.entries()) this.#named[index]?.setSecureContext(this.#material(input));
    this.#options.onLoaded?.();
  }

  report(): object {
    return {
      standIn: true,
      server: this.#options.name,
      pid: process.pid,
      startedAt: this.#startedAt.toISOString(),
      inputs: this.#inputs.map(input => input.report()),
    };
  }

  #accept(socket: Socket): void {
    this.reload('handshake');
    // A connection that breaks off before it says anything is no concern of ours.
    socket.on('error', () => {});
    const named = this.#sni.findIndex((_, index) =>
      this.#contexts.named[index]?.names.includes(socket.localAddress ?? ''),
    );
    (this.#named[named] ?? this.#default).emit('connection', socket);
  }

  #tlsServer(input: StandInInput): HttpsServer {
    const server = createHttps(
      {
        ...this.#material(input),
        requestCert: this.#listed.length > 0,
        rejectUnauthorized: false,
        SNICallback: (name, done) => done(null, this.#contextFor(name.toLowerCase())),
      },
      (request, response) => this.#answer(request, response),
    );
    server.on('tlsClientError', () => {});
    return server;
  }

  #contextFor(name: string): SecureContext {
    const wildcard = name.replace(/^[^.]+/, '*');
    const { named, fallback } = this.#contexts;
    const found =
      named.find(({ names }) => names.includes(name)) ?? named.find(({ names }) => names.includes(wildcard));
    return found?.context ?? fallback;
  }

  #makeContexts(): { fallback: SecureContext; named: { names: readonly string[]; context: SecureContext }[] } {
    return {
      fallback: createSecureContext(this.#material(this.#serving)),
      named: this.#sni.map(({ pair, input }) => ({
        names: pair.names.length > 0 ? pair.names : namesIn(input.text(0)),
        context: createSecureContext(this.#material(input)),
      })),
    };
  }

  #material(input: StandInInput): { cert: string; key: string; ca?: string } {
    const ca = this.#listed.map(listed => listed.text()).join('\n');
    return { cert: input.text(0), key: input.text(1), ...(ca === '' ? {} : { ca }) };
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? '/').split('?')[0] as string;
    const isHealth = /^\/(?:livez|readyz|healthz)(?:\/|$)/.test(path);
    if (isHealth && this.#isStopping && path.startsWith('/readyz')) send(response, 500, 'shutting down');
    else if (isHealth) send(response, 200, 'ok');
    else if (path === LOADED_PATH) sendJson(response, this.report());
    else {
      const client = this.#clientOf(request.socket as TLSSocket);
      if (path === CLIENT_CHECK_PATH) sendJson(response, describeClient(client));
      else if (this.#options.answer?.(path, response, request, client) !== true)
        send(response, 404, 'this server only stands in for the real one');
    }
  }

  /** Whom a client is taken for: what it shows is checked with the client CAs alone, as they are loaded now. */
  #clientOf(socket: TLSSocket): ShownClient | undefined {
    const [certificate, ...intermediates] = shownBy(socket);
    if (certificate === undefined) return undefined;
    const roots = this.#clientCa === undefined ? [] : readCertificates(this.#clientCa.text()).certificates;
    const now = (this.#options.clock ?? systemClock).now();
    const { ok: trusted } = verifyChain({ leaf: certificate, intermediates, roots, now, usage: 'clientAuth' });
    return { certificate, trusted };
  }
}

function describeClient(client: ShownClient | undefined): object {
  if (client === undefined) return { presented: false };
  return { presented: true, trusted: client.trusted, commonName: client.certificate.subject.commonName };
}

export function sendJson(response: ServerResponse, value: object): void {
  send(response, 200, `${JSON.stringify(value)}\n`, 'application/json');
}

function send(response: ServerResponse, code: number, text: string, type = 'text/plain'): void {
  response.writeHead(code, { 'content-type': type, 'x-rotunda-stand-in': 'true' }).end(text);
}

/** The certificates that the other side has shown, its own first. */
function shownBy(socket: TLSSocket): Certificate[] {
  const chain = new Map<string, Certificate>();
  let next: Partial<DetailedPeerCertificate> | undefined = socket.getPeerCertificate(true);
  for (; next?.raw !== undefined && chain.size < MAX_CHAIN_LENGTH; next = next.issuerCertificate) {
    const key = next.raw.toString('base64');
    // The last one is its own issuer.
    if (chain.has(key)) break;
    chain.set(key, parseCertificate(next.raw));
  }
  return [...chain.values()];
}

/** The names a certificate is good for, addresses among them. */
function namesIn(pem: string): string[] {
  const { subjectAltName = '' } = new X509Certificate(pem);
  return [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].map(match => (match[1] as string).toLowerCase());
}

function loadedMessage({ kind, name }: InputSpec): string {
  if (name === 'client-ca') return 'Loaded client CA';
  if (kind === 'bundle') return 'Loaded a new CA Bundle and Verifier';
  if (name === 'serving') return 'Loaded serving cert';
  return name.startsWith('sni-') ? 'Loaded SNI cert' : 'Loaded a new cert/key pair';
}
