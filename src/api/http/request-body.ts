import type { Readable } from 'node:stream';
import { CORE_SCHEMA, load } from 'js-yaml';
import { KubeError } from '../../kube/error.ts';
import { decodeProtobuf } from '../protobuf/decode.ts';
import { PROTOBUF_MEDIA_TYPE } from '../protobuf/messages.ts';
import { WireError } from '../protobuf/wire.ts';
import type { Body } from '../rest/body.ts';
import { badRequest, entityTooLarge, timedOut, unsupportedMediaType } from '../status.ts';
import { inexactInJson, inexactInValue } from './exact-numbers.ts';

/** What the real server takes. */
export const LARGEST_BODY_BYTES = 3 * 1024 * 1024;
const SLOWEST_BODY_MS = 60_000;
const INCOMPLETE = 'the connection was closed before the body of the request was complete';

/** The whole body. Throws 413 as soon as it is known to be too large. */
export function readBody(stream: Readable, contentLength: string | undefined): Promise<Buffer> {
  if (Number(contentLength ?? 0) > LARGEST_BODY_BYTES) return Promise.reject(tooLarge());
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Not with `for await`: leaving its loop early destroys the stream, and with it the way to answer.
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void) => {
      clearTimeout(slow);
      stream.off('data', take).off('end', end).off('error', fail).off('close', gone);
      finish();
    };
    const take = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > LARGEST_BODY_BYTES) settle(() => reject(tooLarge()));
      else chunks.push(chunk);
    };
    const end = () => settle(() => resolve(Buffer.concat(chunks)));
    const fail = (error: Error) => settle(() => reject(error instanceof KubeError ? error : badRequest(INCOMPLETE)));
    const gone = () => settle(() => reject(badRequest(INCOMPLETE)));
    const slow = setTimeout(() => fail(timedOut('the body of the request did not arrive in time')), SLOWEST_BODY_MS);
    stream.on('data', take).on('end', end).on('error', fail).on('close', gone);
  });
}

/** Of larger bodies than this the rest is not even thrown away. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

/** Takes what is left of a body and throws it away; `cut` is called when it is too large or takes too long. */
export function discardBody(stream: Readable, cut: () => void, limitMs = SLOWEST_BODY_MS): void {
  let bytes = 0;
  const slow = setTimeout(cut, limitMs).unref();
  stream.once('end', () => clearTimeout(slow)).once('close', () => clearTimeout(slow));
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_DISCARDED_BYTES) cut();
  });
  stream.resume();
}

const BODY_MEDIA_TYPES = ['application/json', 'application/yaml', PROTOBUF_MEDIA_TYPE];

/** The media type of a request without its parameters; clients that name none mean JSON. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() || 'application/json';
}

/** The object in a body. `kind` is what it should be, for the message when it cannot be read. */
export function parseObject(bytes: Buffer, contentType: string | undefined, kind: string): Body {
  const type = mediaTypeOf(contentType);
  if (type === 'application/yaml') return parseYaml(bytes);
  if (type === PROTOBUF_MEDIA_TYPE) {
    const value = parseProtobuf(bytes, kind);
    return { value, inexact: inexactInValue(value) };
  }
  if (type !== 'application/json') throw unsupportedMediaType(BODY_MEDIA_TYPES);
  return parseJson(
    bytes,
    why =>
      `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why}`,
  );
}

function parseProtobuf(bytes: Buffer, kind: string): object {
  try {
    return decodeProtobuf(bytes);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    throw badRequest(`the object provided is unrecognized (must be of type ${kind}): ${error.message}`);
  }
}

export function parseJson(bytes: Buffer, message: (why: string) => string): Body {
  const text = bytes.toString('utf8');
  try {
    return jsonBody(text);
  } catch (error) {
    throw badRequest(message(whyNotJson(error, text.length)));
  }
}

function jsonBody(text: string): Body {
  const value = JSON.parse(text) as unknown;
  return { value, text, inexact: inexactInJson(text, value) };
}

/**
 * JSON, which is YAML too, or other YAML with the types of JSON and without aliases: a few lines of those can stand for
 * more than fits into memory.
 */
export function parseYaml(bytes: Buffer): Body {
  const text = bytes.toString('utf8');
  try {
    return jsonBody(text);
  } catch {
    // Then it is other YAML.
  }
  try {
    const value = load(text, { schema: CORE_SCHEMA, maxAliases: 0 });
    return { value, inexact: inexactInValue(value) };
  } catch (error) {
    const line = (error as { mark?: { line?: number } }).mark?.line ?? 0;
    throw badRequest(`error decoding YAML: error converting YAML to JSON: yaml: line ${line + 1}: ${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  return (error as { reason?: string }).reason ?? 'it cannot be read';
}

/** The engine's own message quotes the text, which may hold a secret. */
function whyNotJson(error: unknown, length: number): string {
  const message = error instanceof Error ? error.message : '';
  const position = /position (\d+)/.exec(message)?.[1];
  if (message.includes('end of JSON') || Number(position) >= length) return 'unexpected end of JSON input';
  return position === undefined ? 'invalid JSON' : `invalid character at position ${position}`;
}

function tooLarge(): Error {
  return entityTooLarge(`limit is ${LARGEST_BODY_BYTES}`);
}
