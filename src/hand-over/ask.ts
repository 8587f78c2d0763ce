import { randomBytes } from 'node:crypto';
import { connect, isIP } from 'node:net';

/** A server that is asked which CAs it checks its clients with. */
export interface Question {
  readonly host: string;
  readonly port: number;
  /** The name in the greeting; an address is not sent. */
  readonly serverName?: string | undefined;
  readonly timeoutMs: number;
}

/**
 * `loaded`: the names (DER) of the CAs that the server has loaded at this moment. `not-asking`: it asks clients for no certificate, or
 * does not say of whom. `silent`: it could not be asked, which says nothing about what it has loaded.
 */
export type Answer =
  | { readonly kind: 'loaded'; readonly authorities: readonly Buffer[] }
  | { readonly kind: 'not-asking' }
  | { readonly kind: 'silent'; readonly reason: string };

const RECORD = { alert: 21, handshake: 22 } as const;
const MESSAGE = { certificateRequest: 13, serverHelloDone: 14 } as const;
const TLS_1_0 = 0x0301;
const TLS_1_2 = 0x0303;
const RECORD_HEADER_BYTES = 5;
const MESSAGE_HEADER_BYTES = 4;
/** A certificate chain and a list of names, each of which has at most 64 KiB, and the rest of a first flight. */
const LONGEST_FLIGHT_BYTES = 256 * 1024;

/**
 * Asks a server which client CAs it has loaded (spec 90, section 3, `asked`): a TLS 1.2 handshake that ends after the server's first
 * flight, whose `CertificateRequest` names them in the clear. Nothing is shown, nothing is decrypted, nobody is logged in. Never rejects.
 */
export function askForAuthorities({ host, port, serverName, timeoutMs }: Question): Promise<Answer> {
  return new Promise(resolve => {
    const socket = connect({ host, port });
    const flight = new Flight();
    const settle = (answer: Answer) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => settle(silent(`no answer within ${timeoutMs} ms`)), timeoutMs);
    socket.once('connect', () => socket.write(clientHello(serverName)));
    socket.on('data', (chunk: Buffer) => {
      const answer = flight.take(chunk);
      if (answer !== undefined) settle(answer);
    });
    socket.once('close', () => settle(silent('ended the connection within its first flight')));
    socket.on('error', error => settle(silent((error as NodeJS.ErrnoException).code ?? error.name)));
  });
}

/** The server's first flight as it comes in: records, and the messages that are spread over them. */
class Flight {
  #records = Buffer.alloc(0);
  #messages = Buffer.alloc(0);

  /** Takes more bytes; gives the answer as soon as it is known. */
  take(chunk: Buffer): Answer | undefined {
    this.#records = Buffer.concat([this.#records, chunk]);
    if (this.#records.length + this.#messages.length > LONGEST_FLIGHT_BYTES) return silent('says too much');
    while (this.#records.length >= RECORD_HEADER_BYTES) {
      const end = RECORD_HEADER_BYTES + this.#records.readUInt16BE(3);
      if (this.#records.length < end) break;
      const type = this.#records[0];
      const content = this.#records.subarray(RECORD_HEADER_BYTES, end);
      this.#records = this.#records.subarray(end);
      // Too new for this question, or nothing in common: the alert's number is all that can be said.
      if (type === RECORD.alert) return silent(`ended the handshake with alert ${content[1] ?? 'without a number'}`);
      if (type !== RECORD.handshake) return silent('does not speak TLS');
      this.#messages = Buffer.concat([this.#messages, content]);
    }
    return this.#read();
  }

  #read(): Answer | undefined {
    while (this.#messages.length >= MESSAGE_HEADER_BYTES) {
      const end = MESSAGE_HEADER_BYTES + this.#messages.readUIntBE(1, 3);
      if (end > LONGEST_FLIGHT_BYTES) return silent('says too much');
      if (this.#messages.length < end) return undefined;
      const type = this.#messages[0];
      const content = this.#messages.subarray(MESSAGE_HEADER_BYTES, end);
      this.#messages = this.#messages.subarray(end);
      if (type === MESSAGE.serverHelloDone) return { kind: 'not-asking' };
      if (type === MESSAGE.certificateRequest) return authoritiesIn(content);
    }
    return undefined;
  }
}

/** `CertificateRequest` of TLS 1.2: types, signature algorithms, names; each list with its length before it. */
function authoritiesIn(content: Buffer): Answer {
  try {
    const types = 1 + content.readUInt8(0);
    const algorithms = types + 2 + content.readUInt16BE(types);
    const names = content.subarray(algorithms + 2, algorithms + 2 + content.readUInt16BE(algorithms));
    const authorities: Buffer[] = [];
    for (let at = 0; at < names.length; ) {
      const end = at + 2 + names.readUInt16BE(at);
      if (end > names.length) return silent('sent a list of names that ends within a name');
      authorities.push(Buffer.from(names.subarray(at + 2, end)));
      at = end;
    }
    // Servers may leave the list out and accept whatever they like (RFC 5246, 7.4.4).
    return authorities.length === 0 ? { kind: 'not-asking' } : { kind: 'loaded', authorities };
  } catch {
    return silent('sent a request for a certificate that cannot be read');
  }
}

/** The first message of a client that knows TLS 1.2 and nothing newer. */
function clientHello(serverName: string | undefined): Buffer {
  const name = serverName !== undefined && isIP(serverName) === 0 ? Buffer.from(serverName, 'latin1') : undefined;
  const extensions = [
    ...(name === undefined ? [] : [extension(0, sized(2, Buffer.concat([Buffer.of(0), sized(2, name)])))]),
    // Groups: X25519, P-256, P-384, P-521; uncompressed points.
    extension(10, sized(2, numbers(29, 23, 24, 25))),
    extension(11, sized(1, Buffer.of(0))),
    // ECDSA, RSA-PSS and RSA with SHA-256, SHA-384, SHA-512; Ed25519.
    extension(13, sized(2, numbers(0x0403, 0x0503, 0x0603, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0807))),
    // Extended master secret and secure renegotiation, without which strict servers end the handshake.
    extension(23, Buffer.alloc(0)),
    extension(0xff01, Buffer.of(0)),
  ];
  const body = Buffer.concat([
    numbers(TLS_1_2),
    randomBytes(32),
    sized(1, Buffer.alloc(0)),
    // AES-GCM and ChaCha20 with ECDHE, for ECDSA and RSA; last those without it, for old servers.
    sized(2, numbers(0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d, 0x002f, 0x0035)),
    sized(1, Buffer.of(0)),
    sized(2, Buffer.concat(extensions)),
  ]);
  const message = Buffer.concat([Buffer.of(1), sized(3, body)]);
  return Buffer.concat([Buffer.of(RECORD.handshake), numbers(TLS_1_0), sized(2, message)]);
}

function extension(type: number, content: Buffer): Buffer {
  return Buffer.concat([numbers(type), sized(2, content)]);
}

/** The content with its length before it, in so many bytes. */
function sized(lengthBytes: number, content: Buffer): Buffer {
  const length = Buffer.alloc(lengthBytes);
  length.writeUIntBE(content.length, 0, lengthBytes);
  return Buffer.concat([length, content]);
}

function numbers(...values: number[]): Buffer {
  return Buffer.concat(values.map(value => Buffer.of(value >> 8, value & 0xff)));
}

function silent(reason: string): Answer {
  return { kind: 'silent', reason };
}
