import { isDeepStrictEqual } from 'node:util';
import { CORE_SCHEMA, load } from 'js-yaml';
import { isFields } from '../exchange.ts';
import { NodeFault } from './file-text.ts';

/**
 * A kubeconfig as text, in which single values are replaced and every other byte stays. It is about the entries that the current context
 * names. No error quotes the file: it holds keys.
 */
export class KubeconfigText {
  readonly text: string;
  readonly #path: string;
  readonly #cluster: Fields;
  readonly #user: Fields;
  /** In the file: the index of each entry in its list. */
  readonly #at: { readonly clusters: number; readonly users: number };

  /** Throws `NodeFault`. */
  constructor(text: string, path: string) {
    this.text = text;
    this.#path = path;
    const fields = parsed(text);
    if (fields === undefined) throw new NodeFault(`${path}: expected a kubeconfig, found something else`);
    const context = entry(fields, 'contexts', 'context', fields['current-context']);
    const cluster = entry(fields, 'clusters', 'cluster', context?.fields['cluster']);
    const user = entry(fields, 'users', 'user', context?.fields['user']);
    if (cluster === undefined || user === undefined)
      throw new NodeFault(`${path}: expected a kubeconfig with a current context, a cluster and a user`);
    this.#cluster = cluster.fields;
    this.#user = user.fields;
    this.#at = { clusters: cluster.index, users: user.index };
  }

  get server(): string | undefined {
    return textIn(this.#cluster['server']);
  }

  get serverName(): string | undefined {
    return textIn(this.#cluster['tls-server-name']);
  }

  /** The CAs in the file; undefined: they are in none, or elsewhere. */
  get authorities(): string | undefined {
    return decoded(this.#cluster[CA_DATA]);
  }

  get authorityFile(): string | undefined {
    return this.authorities === undefined ? textIn(this.#cluster['certificate-authority']) : undefined;
  }

  get certificate(): string | undefined {
    return decoded(this.#user[CERTIFICATE_DATA]);
  }

  get key(): string | undefined {
    return decoded(this.#user[KEY_DATA]);
  }

  get certificateFile(): string | undefined {
    return this.certificate === undefined ? textIn(this.#user['client-certificate']) : undefined;
  }

  /** The same file with other CAs. */
  withAuthorities(pem: string): KubeconfigText {
    return this.#with('clusters', 'cluster', { [CA_DATA]: pem });
  }

  withClient(certificate: string, key: string): KubeconfigText {
    return this.#with('users', 'user', { [CERTIFICATE_DATA]: certificate, [KEY_DATA]: key });
  }

  #with(list: 'clusters' | 'users', one: string, values: Readonly<Record<string, string>>): KubeconfigText {
    let text = this.text;
    for (const [field, value] of Object.entries(values)) {
      text = this.#replaced(text, list, one, field, Buffer.from(value).toString('base64'));
    }
    return new KubeconfigText(text, this.#path);
  }

  /** Every line that might be the one is tried; what counts is that a reader sees exactly that value changed. */
  #replaced(text: string, list: 'clusters' | 'users', one: string, field: string, value: string): string {
    const expected = parsed(text);
    const entries = (expected ?? {})[list] as Record<string, Fields>[];
    const target = entries[this.#at[list]]?.[one] ?? {};
    const old = textIn(target[field]);
    if (old === value) return text;
    target[field] = value;
    const line = new RegExp(
      `^([ \\t-]*["']?${field}["']?:[ \\t]*["']?)([A-Za-z0-9+/=]+)(?=["']?[ \\t]*(?:#.*)?\\r?$)`,
      'gm',
    );
    for (const match of text.matchAll(line)) {
      if (old === undefined || match[2] !== old) continue;
      const start = match.index + (match[1] ?? '').length;
      const candidate = text.slice(0, start) + value + text.slice(start + old.length);
      if (isDeepStrictEqual(parsed(candidate), expected)) return candidate;
    }
    throw new NodeFault(`${this.#path}: expected ${field} with its value on one line`);
  }
}

type Fields = Record<string, unknown>;

const CA_DATA = 'certificate-authority-data';
const CERTIFICATE_DATA = 'client-certificate-data';
const KEY_DATA = 'client-key-data';

function parsed(text: string): Fields | undefined {
  try {
    const value = load(text, { schema: CORE_SCHEMA, maxAliases: 0 });
    return isFields(value) ? value : undefined;
  } catch {
    // The parser quotes its input.
    return undefined;
  }
}

function entry(
  fields: Fields,
  list: string,
  one: string,
  name: unknown,
): { fields: Fields; index: number } | undefined {
  const entries = fields[list];
  if (!Array.isArray(entries)) return undefined;
  const index = entries.findIndex(candidate => isFields(candidate) && candidate['name'] === name);
  const found = (entries[index] as Fields | undefined)?.[one];
  return isFields(found) ? { fields: found, index } : undefined;
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function decoded(value: unknown): string | undefined {
  const text = textIn(value);
  return text === undefined ? undefined : Buffer.from(text, 'base64').toString();
}
