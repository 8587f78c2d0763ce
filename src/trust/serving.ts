import { formatIp, parseIp } from '../pki/ip.ts';
import type { ObjectRef } from './object.ts';

/** The certificates a kube-apiserver chooses from. */
export interface ServedCertificates {
  /** Shown to whoever asks for nobody, or for somebody unknown. */
  readonly fallback: ObjectRef;
  /** In the server's order: of two that are good for a name, the earlier one has it. */
  readonly named: readonly NamedCertificate[];
}

export interface NamedCertificate {
  readonly object: ObjectRef;
  readonly names: readonly string[];
  /** The names stand in the configuration, not in the certificate: they outweigh those of all other certificates. */
  readonly isExplicit?: boolean | undefined;
}

export interface Handshake {
  /** What the client asks for; an IP address is never sent (RFC 6066). */
  readonly serverName: string;
  /** The server's own address of the connection: it counts where no name was sent. */
  readonly address?: string | undefined;
}

/** Which certificate a client sees: by exact name, else by a wildcard for the first label, else the fallback. */
export function servedCertificate({ fallback, named }: ServedCertificates, handshake: Handshake): ObjectRef {
  const asked = handshake.serverName.toLowerCase().replace(/\.$/, '');
  const isSent = asked !== '' && addressText(asked) === undefined;
  const wanted = isSent ? asked : addressText(handshake.address ?? '');
  if (wanted === undefined) return fallback;
  const wildcard = isSent && wanted.includes('.') ? [`*${wanted.slice(wanted.indexOf('.'))}`] : [];
  for (const candidate of [wanted, ...wildcard]) {
    const good = named.filter(({ names }) => names.some(name => name.toLowerCase() === candidate));
    const chosen = good.find(({ isExplicit }) => isExplicit) ?? good[0];
    if (chosen !== undefined) return chosen.object;
  }
  return fallback;
}

/** The canonical text of an IP address, with or without brackets; undefined for what is none. */
function addressText(text: string): string | undefined {
  const bytes = parseIp(text.replace(/^\[(.*)\]$/, '$1'));
  return bytes && formatIp(bytes);
}
