import type { IncomingMessage, ServerResponse } from 'node:http';
import { assertNoKeyMaterial } from './key-material.ts';

/** Nothing from elsewhere, nothing inline, in nobody's frame. */
const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
};

const LARGEST_BODY_BYTES = 64 * 1024;

/** An answer other than the wanted one; its message goes to the user. */
export class HttpProblem extends Error {
  override readonly name = 'HttpProblem';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function setSecurityHeaders(response: ServerResponse, isTls: boolean): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
  if (isTls) response.setHeader('strict-transport-security', 'max-age=31536000');
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const text = JSON.stringify(value);
  assertNoKeyMaterial(text, 'an answer');
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  response.end(text);
}

/** The JSON body of a request that changes something. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  if (!/^application\/json(?:;|$)/.test(request.headers['content-type'] ?? '')) {
    throw new HttpProblem(415, 'expected a body of type application/json');
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_BODY_BYTES) throw new HttpProblem(413, `the body is larger than ${LARGEST_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown;
  } catch {
    throw new HttpProblem(400, 'the body is no JSON');
  }
}

export function cookieOf(request: IncomingMessage, name: string): string | undefined {
  const pairs = (request.headers.cookie ?? '').split(/;\s*/).map(pair => pair.split('='));
  return pairs.find(([key]) => key === name)?.[1];
}

/** Names under which the server may be called. Another one means that somebody's DNS points at us (rebinding). */
export function allowedHosts(host: string, port: number, hostnames: readonly string[]): ReadonlySet<string> {
  const names = [
    ...(isLoopback(host) ? ['localhost', '127.0.0.1', '[::1]'] : []),
    bracketed(host),
    ...hostnames.map(bracketed),
  ];
  const isDefault = port === 443 || port === 80;
  return new Set(
    names.flatMap(name => [`${name}:${port}`, ...(isDefault ? [name] : [])]).map(name => name.toLowerCase()),
  );
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
