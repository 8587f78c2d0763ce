/** What the words in revisioned content stand for on this node. */
export interface Tokens {
  /** Inserted literally: `006` stays `006`. */
  readonly revision: string;
  readonly nodeName: string;
}

/**
 * Replaces `REVISION`, `NODE_NAME` and `NODE_ENVVAR_NAME`, in this order (spec 30, 10.3.5). Works on bytes: what is not a token
 * comes out as it went in, text or not (T21).
 */
export function substituteTokens(content: Uint8Array, { revision, nodeName }: Tokens): Buffer {
  // Latin-1 maps every byte to one character and back.
  const text = Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString('latin1');
  const replaced = text
    .replaceAll('REVISION', () => latin1Of(revision))
    .replaceAll('NODE_NAME', () => latin1Of(nodeName))
    .replaceAll('NODE_ENVVAR_NAME', () => latin1Of(envVarName(nodeName)));
  return Buffer.from(replaced, 'latin1');
}

/** A node name as part of the name of an environment variable. */
export function envVarName(nodeName: string): string {
  return nodeName.replaceAll(/[-.]/g, '_');
}

function latin1Of(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
