import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import { type Certificate, parseCertificate } from '../pki/certificate.ts';

/** A server that is looked at. */
export interface ServerPlace {
  readonly host: string;
  readonly port: number;
  /** The name that is asked for, which decides what is shown; an address is not sent. The host when absent. */
  readonly serverName?: string | undefined;
}

/** A chain longer than this is none. */
const LONGEST_CHAIN = 10;

/**
 * What a server shows; empty when it shows nothing that can be read. Nothing is sent to it, so what it shows need not be trusted. Never
 * rejects.
 */
export function chainServed({ host, port, serverName = host }: ServerPlace, timeoutMs: number): Promise<Certificate[]> {
  return new Promise(resolve => {
    const name = isIP(serverName) === 0 ? { servername: serverName } : {};
    const socket: TLSSocket = connect({ host, port, ...name, rejectUnauthorized: false });
    const settle = (chain: Certificate[]) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(chain);
    };
    const timer = setTimeout(() => settle([]), timeoutMs);
    socket.once('secureConnect', () => settle(chainOf(socket.getPeerCertificate(true))));
    socket.on('error', () => settle([]));
    socket.once('close', () => settle([]));
  });
}

function chainOf(leaf: DetailedPeerCertificate): Certificate[] {
  const chain: Certificate[] = [];
  try {
    for (let at: DetailedPeerCertificate | undefined = leaf; at?.raw && chain.length < LONGEST_CHAIN; ) {
      chain.push(parseCertificate(at.raw));
      at = at.issuerCertificate === at ? undefined : at.issuerCertificate;
    }
    return chain;
  } catch {
    return chain;
  }
}
