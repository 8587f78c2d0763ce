import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type Clock, systemClock } from './clock.ts';
import { seconds } from './duration.ts';

/** A way to an API and the proof of who we are. Whoever sends a request asks for the connection anew each time. */
export interface Access {
  /** Where to look when nobody says in which namespace. */
  readonly namespace: string;
  /** The way to the API right now. Cheap; the same object again as long as nothing changed. */
  connection(): Promise<Connection>;
  /** Tells that the API answered 401. True when asking for the connection again may bring better credentials. */
  refused(): boolean;
}

export interface Connection {
  readonly server: URL;
  readonly tls: TlsMaterial;
  /** Sent with every request; the bearer token is among them. */
  readonly headers: Readonly<Record<string, string | string[]>>;
}

export interface TlsMaterial {
  /** PEM. Absent: the authorities the runtime trusts. */
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
  /** The name to ask for and to verify, where it is not the host of the URL. */
  readonly serverName?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** How old what we know of the files may become. Certificates rotate under us; reading a few files a second costs nothing. */
const RECHECK_MS = seconds(1);

export interface RereadOptions {
  readonly namespace: string;
  readonly clock?: Clock | undefined;
  /** Hears why a changed file was not taken, for instance a certificate whose key has not arrived yet. */
  readonly onError?: ((error: Error) => void) | undefined;
}

/**
 * Access that `load` reads from files. It is read again when a second has passed; what cannot be used (a half-written
 * pair, a file that is being replaced) leaves the last usable state in place.
 */
export class RereadAccess implements Access {
  readonly namespace: string;
  readonly #load: (refresh: boolean) => Promise<Connection>;
  readonly #clock: Clock;
  readonly #onError: (error: Error) => void;
  #current: Connection | undefined;
  #checkedMs = Number.NEGATIVE_INFINITY;
  #checking: Promise<Connection> | undefined;
  #refresh = false;

  /** `load(refresh)` reads everything; with `refresh` it also drops credentials that it would otherwise keep. */
  constructor(load: (refresh: boolean) => Promise<Connection>, options: RereadOptions) {
    this.namespace = options.namespace;
    this.#load = load;
    this.#clock = options.clock ?? systemClock;
    this.#onError = options.onError ?? (() => {});
  }

  connection(): Promise<Connection> {
    const age = this.#clock.now().getTime() - this.#checkedMs;
    if (this.#current !== undefined && age >= 0 && age < RECHECK_MS) return Promise.resolve(this.#current);
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  refused(): boolean {
    this.#refresh = true;
    this.#checkedMs = Number.NEGATIVE_INFINITY;
    return true;
  }

  async #check(): Promise<Connection> {
    const refresh = this.#refresh;
    this.#refresh = false;
    try {
      const found = await this.#load(refresh);
      if (this.#current === undefined || !isSameTls(found.tls, this.#current.tls)) assertUsable(found.tls);
      if (this.#current === undefined || !isSameConnection(found, this.#current)) this.#current = found;
    } catch (error) {
      if (this.#current === undefined) throw error;
      this.#onError(error instanceof Error ? error : new Error(String(error)));
    }
    this.#checkedMs = this.#clock.now().getTime();
    return this.#current;
  }
}

/** Access that never changes: for tests, and for callers that hold their credentials in memory. */
export function fixedAccess(server: string | URL, rest: Partial<Omit<Connection, 'server'>> = {}): Access {
  const connection = { server: new URL(server), tls: rest.tls ?? {}, headers: rest.headers ?? {} };
  return { namespace: 'default', connection: () => Promise.resolve(connection), refused: () => false };
}

/** The same access with something changed in every connection; gives the same object again as long as the access does. */
export function changedAccess(access: Access, change: (connection: Connection) => Connection): Access {
  let [from, to]: [Connection | undefined, Connection | undefined] = [undefined, undefined];
  return {
    namespace: access.namespace,
    refused: () => access.refused(),
    async connection() {
      const connection = await access.connection();
      if (connection !== from || to === undefined) [from, to] = [connection, change(connection)];
      return to;
    },
  };
}

/** Whether both connections can share their sockets: headers go with each request and do not count. */
export function isSameTransport(a: Connection, b: Connection): boolean {
  return a === b || (a.server.href === b.server.href && isSameTls(a.tls, b.tls));
}

function isSameConnection(a: Connection, b: Connection): boolean {
  return isSameTransport(a, b) && JSON.stringify(a.headers) === JSON.stringify(b.headers);
}

function isSameTls(a: TlsMaterial, b: TlsMaterial): boolean {
  return (
    a.ca === b.ca &&
    a.certificate === b.certificate &&
    a.key === b.key &&
    a.serverName === b.serverName &&
    Boolean(a.insecure) === Boolean(b.insecure)
  );
}

/** A certificate without its own key, or a file that is half written, must not replace what works. */
function assertUsable({ ca, certificate, key }: TlsMaterial): void {
  if ((certificate === undefined) !== (key === undefined)) {
    const [there, missing] = key === undefined ? ['certificate', 'key'] : ['key', 'certificate'];
    throw new Error(`a client ${there} is configured without its ${missing}`);
  }
  if (ca !== undefined) attempt('the CA bundle', () => assertCertificates(ca));
  if (key !== undefined)
    // Without authorities: reading all that the runtime trusts takes longer than everything else here.
    attempt('the client certificate and key', () => createSecureContext({ cert: certificate, key, ca: [] }));
}

function attempt(what: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : (error as Error).message;
    throw new Error(`${what} cannot be used: ${reason}`, { cause: error });
  }
}

const BEGIN = '-----BEGIN CERTIFICATE-----';

/** TLS itself would silently skip what it cannot read. */
function assertCertificates(pem: string): void {
  const begun = pem.split(BEGIN).length - 1;
  const complete = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (begun === 0 || begun !== complete.length) {
    throw new Error(`expected certificates in PEM, found ${complete.length} complete ones and ${begun} beginnings`);
  }
  for (const block of complete) void new X509Certificate(block);
}
