/** Where a server is, as sockets want it, and the name its certificate has to be good for. */
export interface ServerAddress {
  /** An IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly serverName: string;
}

const HTTPS_PORT = 443;

/** The server of an HTTPS URL; undefined for anything else. `serverName` where the URL's host is not the name to ask for. */
export function serverAddressOf(url: string | URL, serverName?: string): ServerAddress | undefined {
  if (typeof url === 'string' && !URL.canParse(url)) return undefined;
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== 'https:' || hostname === '') return undefined;
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port: Number(port || HTTPS_PORT), serverName: serverName || host };
}
