import { join } from 'node:path';
import { type Clock, systemClock } from '../kube/clock.ts';
import { days, hours } from '../kube/duration.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { type Keys, systemKeys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { ClientTrust } from './client-trust.ts';
import type { EmbeddedKube } from './embedded.ts';
import { type Engine, startEngine } from './engine.ts';
import { writeAtomically } from './files.ts';
import { type HttpServer, type ServingIdentity, serveHttp } from './http/server.ts';
import { type Identity, loadIdentity } from './identity.ts';
import { kubeconfigFor } from './kubeconfig.ts';
import type { PodLogs } from './rest/core.ts';
import { openSqliteJournal } from './store/sqlite.ts';

export { EmbeddedKube } from './embedded.ts';
export { type Engine, startEngine } from './engine.ts';
export type { PodLogOptions, PodLogs } from './rest/core.ts';
export { StoreLockedError } from './store/sqlite.ts';

export interface ApiOptions {
  /** Where everything is kept. Absent: in memory, gone at the end. */
  readonly dir?: string | undefined;
  readonly host?: string | undefined;
  /** 0 chooses a free one. */
  readonly port?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly keys?: Keys | undefined;
  /** Further names and addresses the serving certificate is good for. */
  readonly hostnames?: readonly string[] | undefined;
  readonly podLogs?: PodLogs | undefined;
  /** Others stand in front of this server and speak for the cluster: it publishes no CA of its own, and signs no requests. */
  readonly isBehindOthers?: boolean | undefined;
  readonly onError?: ((what: string, error: unknown) => void) | undefined;
}

export interface Api {
  readonly url: string;
  /** Present when there is a directory. */
  readonly kubeconfigPath: string | undefined;
  readonly kubeconfig: string;
  /** The same API without the wire, in the hands of an administrator. */
  readonly kube: EmbeddedKube;
  readonly engine: Engine;
  /** Shows another certificate from the next handshake on; PEM. */
  setServing(serving: { readonly cert: string; readonly key: string }): void;
  /** Takes client certificates of these CAs besides those of its own; PEM. */
  setClientCas(bundle: string): void;
  /** How many watches are open over the network. */
  watches(): number;
  close(): Promise<void>;
}

const LOOPBACK = '127.0.0.1';
/** How often certificates are looked at while the server runs. */
const RENEWAL_CHECK_MS = hours(12);
const SIGNED_LIFETIME_MS = days(365);

/** Starts the embedded Kubernetes API. Throws `StoreLockedError` when another process has the directory. */
export async function startApi(options: ApiOptions = {}): Promise<Api> {
  const { dir, host = LOOPBACK, port = 0, clock = systemClock, keys = systemKeys, onError = () => {} } = options;
  // The store comes first: it holds the lock on the directory.
  const journal = dir === undefined ? undefined : openSqliteJournal(join(dir, 'store.sqlite'));
  const started: { close(): Promise<void> | void }[] = journal === undefined ? [] : [journal];
  try {
    const identityOptions = { dir, keys, clock, hostnames: [host, ...(options.hostnames ?? [])].filter(isName) };
    const identity = await loadIdentity(identityOptions);
    const trust = new ClientTrust(identity.clientCa);
    const engine = await startEngine({
      clock,
      journal,
      tokenKey: identity.tokenKey,
      clientCas: () => trust.certificates,
      ...(options.isBehindOthers
        ? { rootCa: 'of others' as const }
        : {
            rootCa: () => encodeCertificates(identity.servingCa.chain),
            signer: { authority: () => identity.clientCa, keys, lifetimeMs: SIGNED_LIFETIME_MS },
          }),
      podLogs: options.podLogs,
      onError,
    });
    // The engine closes the journal.
    started[0] = engine;
    const http = await serveHttp(engine.core, {
      host,
      port,
      identity: servingIdentity(identity.serving, trust),
      onError: error => onError('request', error),
    });
    started.unshift(http);
    const url = `https://${host.includes(':') ? `[${host}]` : host}:${http.port}`;
    const publishTrust = async () => {
      if (!options.isBehindOthers) await trust.publish(engine.kube);
    };
    return await assemble({ dir, url, identity, identityOptions, trust, publishTrust, engine, http, clock, onError });
  } catch (error) {
    for (const part of started) await part.close();
    throw error;
  }
}

interface Parts {
  readonly dir: string | undefined;
  readonly url: string;
  readonly identity: Identity;
  readonly identityOptions: Parameters<typeof loadIdentity>[0];
  readonly trust: ClientTrust;
  readonly publishTrust: () => Promise<void>;
  readonly engine: Engine;
  readonly http: HttpServer;
  readonly clock: Clock;
  readonly onError: (what: string, error: unknown) => void;
}

async function assemble({
  dir,
  url,
  identity,
  identityOptions,
  trust,
  publishTrust,
  engine,
  http,
  clock,
  onError,
}: Parts): Promise<Api> {
  const kubeconfig = kubeconfigFor(url, identity.servingCa, identity.admin);
  const kubeconfigPath = dir === undefined ? undefined : join(dir, 'kubeconfig');
  const publish = async (text: string) => {
    if (kubeconfigPath !== undefined) await writeAtomically(kubeconfigPath, text);
  };
  await publish(kubeconfig);
  await publishTrust();
  let shown: ServingIdentity = servingIdentity(identity.serving, trust);
  /** Somebody else's certificate is shown; renewing it is not our affair. */
  let replaced = false;
  const show = (next: ServingIdentity) => {
    shown = next;
    http.setIdentity(next);
  };
  const stop = new AbortController();
  const renewal = renewForever(
    clock,
    stop.signal,
    async () => {
      // What was never written down cannot be told from what is missing.
      if (dir === undefined) return;
      const renewed = await loadIdentity(identityOptions);
      if (!replaced) show(servingIdentity(renewed.serving, trust));
      await publish(kubeconfigFor(url, renewed.servingCa, renewed.admin));
    },
    error => onError('renewal of certificates', error),
  );
  return {
    url,
    kubeconfigPath,
    kubeconfig,
    kube: engine.kube,
    engine,
    setServing({ cert, key }) {
      show({ ...shown, cert, key });
      replaced = true;
    },
    setClientCas(bundle) {
      trust.add(bundle);
      show({ ...shown, clientCa: trust.pem });
      publishTrust().catch((error: unknown) => onError('publishing client CAs', error));
    },
    watches: () => http.watches(),
    async close() {
      stop.abort();
      await renewal;
      await http.close();
      await engine.close();
    },
  };
}

/** Certificates with little time left are replaced while the server runs. */
async function renewForever(
  clock: Clock,
  signal: AbortSignal,
  renew: () => Promise<void>,
  onError: (error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    const next = new Date(clock.now().getTime() + RENEWAL_CHECK_MS);
    await clock.until(next, signal).catch(() => {});
    if (!signal.aborted) await renew().catch(onError);
  }
}

function servingIdentity(serving: CertificateAndKey, trust: ClientTrust): ServingIdentity {
  return { cert: encodeCertificates(serving.chain), key: encodePrivateKey(serving.key), clientCa: trust.pem };
}

/** The addresses that mean all interfaces are no names a certificate can carry. */
function isName(host: string): boolean {
  return host !== '' && host !== '0.0.0.0' && host !== '::';
}
