import { once } from 'node:events';
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { connect, createServer, type Server } from 'node:tls';
import { PATIENCE_MS } from '../../tools/eventually.ts';

/** Certificate and key in PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

const ANSWER = 'welcome';

/**
 * Does with its clients what a kubelet does: asks for a certificate, believes the CAs of a file, and reads that file again when it
 * has changed, without a restart and without dropping connections. A file it cannot use is not taken.
 */
export class KubeletServer {
  readonly #server: Server;
  readonly #watcher: FSWatcher;
  readonly #path: string;
  readonly #serving: Pair;
  /** The CAs in use, as text. */
  trusted = '';
  reloads = -1;

  private constructor(path: string, serving: Pair) {
    this.#path = path;
    this.#serving = serving;
    this.#server = createServer({ ...serving, requestCert: true, rejectUnauthorized: true }, socket => {
      socket.on('error', () => {});
      socket.end(ANSWER);
    });
    this.#server.on('tlsClientError', () => {});
    this.#load();
    this.#watcher = watch(dirname(path), () => this.#load());
  }

  static async start(path: string, serving: Pair): Promise<KubeletServer> {
    const kubelet = new KubeletServer(path, serving);
    kubelet.#server.listen(0, '127.0.0.1');
    await once(kubelet.#server, 'listening');
    return kubelet;
  }

  /** One connection with a client certificate; rejects unless the server took it. */
  handshake(client: Pair, servingCa: string): Promise<void> {
    const { port } = this.#server.address() as AddressInfo;
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, ca: servingCa, ...client, servername: 'localhost' });
      let heard = '';
      socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('no answer in time')));
      socket.on('data', chunk => (heard += String(chunk)));
      socket.on('error', reject);
      socket.on('close', () => (heard === ANSWER ? resolve() : reject(new Error('closed without an answer'))));
    });
  }

  async stop(): Promise<void> {
    this.#watcher.close();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #load(): void {
    const text = read(this.#path);
    if (text === undefined || text === this.trusted) return;
    try {
      this.#server.setSecureContext({ ...this.#serving, ca: text });
      this.trusted = text;
      this.reloads++;
    } catch {
      // The CAs before stay in use.
    }
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
