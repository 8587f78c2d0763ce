import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Log } from '../../controller/log.ts';
import { seconds } from '../../kube/duration.ts';
import { closeAtOnce, listenOn } from '../../kube/listen.ts';
import { loadCertificateAndKey } from '../../pki/authority.ts';
import { urlHost } from '../node-address.ts';

export interface ServingFiles {
  readonly cert: string;
  readonly key: string;
  /** With it, only clients with a certificate of one of these CAs are let in. */
  readonly clientCa?: string | undefined;
}

export interface ReloadingServer {
  readonly url: string;
  stop(): Promise<void>;
}

const HANDSHAKE_LIMIT_MS = seconds(10);
const REQUEST_LIMIT_MS = seconds(30);
const MOST_CONNECTIONS = 50;

/**
 * An HTTPS server whose certificate, key and client CAs are files that others replace. They are looked at with every question and
 * after every failed handshake, so that a rotation needs no restart.
 */
export async function startReloadingServer(
  listenAt: { readonly address: string; readonly port: number },
  files: ServingFiles,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  log: Pick<Log, 'info' | 'warn'>,
): Promise<ReloadingServer> {
  let current = await readServing(files);
  const refresh = async () => {
    try {
      const next = await readServing(files);
      if (next.cert === current.cert && next.key === current.key && next.ca === current.ca) return;
      current = next;
      server.setSecureContext({ ...next, minVersion: 'TLSv1.2' });
      log.info({ cert: files.cert }, 'other certificates from the next connection on');
    } catch (error) {
      // Half of a pair: the other half is on its way.
      log.warn({ why: errorText(error) }, 'kept the certificates in use');
    }
  };
  const isClosed = files.clientCa !== undefined;
  const options = { ...current, minVersion: 'TLSv1.2', requestCert: isClosed, rejectUnauthorized: isClosed } as const;
  const server = createServer(
    { ...options, handshakeTimeout: HANDSHAKE_LIMIT_MS, requestTimeout: REQUEST_LIMIT_MS },
    (request, response) => {
      request.resume();
      void refresh();
      try {
        answer(request, response);
      } catch (error) {
        log.warn({ why: errorText(error) }, 'a request could not be answered');
        response.destroy();
      }
    },
  );
  server.on('tlsClientError', () => void refresh());
  server.maxConnections = MOST_CONNECTIONS;
  const address = withoutBrackets(listenAt.address);
  // As Go does it: every address is one of either family, where Node takes 0.0.0.0 for IPv4 alone (spec 40, A-6 and P-5).
  const isEvery = address === '0.0.0.0' || address === '::';
  const port = await listenOn(server, listenAt.port, isEvery ? undefined : address);
  return {
    url: `https://${urlHost(address)}:${port}`,
    stop: () => closeAtOnce(server),
  };
}

/** IPv6 addresses come from the environment of the pod as they stand in a URL. */
function withoutBrackets(address: string): string {
  return address.replace(/^\[(.*)\]$/, '$1');
}

async function readServing({ cert, key, clientCa }: ServingFiles): Promise<{ cert: string; key: string; ca?: string }> {
  const [certText, keyText, caText] = await Promise.all([
    readFile(cert, 'utf8'),
    readFile(key, 'utf8'),
    clientCa === undefined ? undefined : readFile(clientCa, 'utf8'),
  ]);
  loadCertificateAndKey(certText, keyText);
  return { cert: certText, key: keyText, ...(caText === undefined ? {} : { ca: caText }) };
}
