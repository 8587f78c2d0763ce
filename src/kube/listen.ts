import type { AddressInfo, Server } from 'node:net';

/**
 * Resolves with the port when the server takes connections there; rejects when it cannot, for instance EADDRINUSE.
 * From then on a connection that cannot be accepted, for instance because no file descriptor is left, is lost to its client
 * and does not end the program.
 */
export function listenOn(server: Server, port: number, host?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen({ port, host }, () => resolve((server.address() as AddressInfo).port));
  });
}
