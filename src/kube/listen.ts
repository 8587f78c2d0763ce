import type { AddressInfo, Server, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

/**
 * Resolves with the port when the server takes connections there; rejects when it cannot, for instance EADDRINUSE.
 * From then on a connection that cannot be accepted, for instance because no file descriptor is left, is lost to its client
 * and does not end the program. A TLS server given here speaks HTTP.
 */
export function listenOn(server: Server, port: number, host?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    keepCount(server);
    server.on('secureConnection', keepWhatComesEarly);
    server.listen({ port, host }, () => resolve((server.address() as AddressInfo).port));
  });
}

/**
 * Takes no new connections, ends those there are, and resolves when none is left. Servers know of a connection once somebody has shaken
 * hands or asked for something over it; one that stays silent would be waited for as long as it may take to do so.
 */
export function closeAtOnce(server: Server): Promise<void> {
  return new Promise(resolve => {
    server.close(() => resolve());
    for (const socket of OPEN.get(server) ?? []) socket.destroy();
  });
}

/** All connections of servers that listen here, from the moment on in which they are accepted. */
const OPEN = new WeakMap<Server, Set<Socket>>();

function keepCount(server: Server): void {
  const open = new Set<Socket>();
  OPEN.set(server, open);
  const count = (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  };
  server.on('connection', count);
  // A TLS connection has two ends here: the one with the bytes of the wire, and this one.
  server.on('secureConnection', count);
}

/**
 * While an answer is still being taken, Node stops the parser of its HTTP/1.1 connection. Over TLS the parser is then fed what
 * is left of the bytes already read, takes it for an error and gives the connection up (HPE_PAUSED; Node 20 to 26): requests
 * with a body of some size get no answer. Somebody who listens for data makes it go through the stream, where it waits.
 */
function keepWhatComesEarly(socket: TLSSocket): void {
  if (socket.alpnProtocol !== 'h2') socket.on('data', () => {});
}
