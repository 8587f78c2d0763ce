import { CORE_SCHEMA, defineScalarTag, dump, floatCoreTag, intCoreTag, load, mapTag, NOT_RESOLVED } from 'js-yaml';
import { type ServerAddress, serverAddressOf } from '../../kube/server-address.ts';
import { decodeStrictBase64 } from '../../machine-config-api/base64.ts';
import { InputError } from './problem.ts';

/**
 * A kubeconfig whose first cluster's CA can be read and replaced; everything else in it stays, known to us or not (spec 60,
 * 4.7.3 and 4.7.8). No error quotes the file: it holds tokens and keys (D-31).
 */
export class Kubeconfig {
  readonly #fields: Fields;
  readonly #cluster: Fields;

  /** Throws `InputError` with the path. */
  constructor(bytes: Uint8Array, path: string) {
    const fields = parse(bytes);
    const [first] = Array.isArray(fields?.['clusters']) ? (fields['clusters'] as unknown[]) : [];
    const cluster = isFields(first) ? first['cluster'] : undefined;
    if (fields === undefined || !isFields(cluster)) {
      throw new InputError('InvalidKubeconfig', `${path}: expected a kubeconfig with a cluster, found something else`);
    }
    this.#fields = fields;
    this.#cluster = cluster;
  }

  /** The CAs the API server is verified with; empty where they are not in the file itself. */
  get authorities(): Buffer {
    const data = this.#cluster[CA_DATA];
    return (typeof data === 'string' && decodeStrictBase64(data)) || Buffer.alloc(0);
  }

  /** The file that the CAs are in where they are not in this one, as it is written; undefined: there is none. */
  get authorityFile(): string | undefined {
    const file = this.#cluster['certificate-authority'];
    return !this.#cluster[CA_DATA] && typeof file === 'string' && file !== '' ? file : undefined;
  }

  /** The certificate that its first user shows; empty where it is not in the file itself. */
  get clientCertificate(): Buffer {
    const [first] = Array.isArray(this.#fields['users']) ? (this.#fields['users'] as unknown[]) : [];
    const user = isFields(first) ? first['user'] : undefined;
    const data = isFields(user) ? user['client-certificate-data'] : undefined;
    return (typeof data === 'string' && decodeStrictBase64(data)) || Buffer.alloc(0);
  }

  /** Where the API server is, and the name its certificate has to be good for; undefined where no certificate is checked. */
  get endpoint(): ServerAddress | undefined {
    const { server, 'tls-server-name': name, 'insecure-skip-tls-verify': isUnchecked } = this.#cluster;
    if (typeof server !== 'string' || isUnchecked === true) return undefined;
    return serverAddressOf(server, typeof name === 'string' ? name : undefined);
  }

  /** The file with other CAs: keys ascending, no line folded. */
  withAuthorities(bundle: string): Buffer {
    const before = this.#cluster[CA_DATA];
    this.#cluster[CA_DATA] = Buffer.from(bundle).toString('base64');
    try {
      return Buffer.from(dump(this.#fields, { schema: VERBATIM, sortKeys: true, lineWidth: -1, noRefs: true }));
    } finally {
      this.#cluster[CA_DATA] = before;
    }
  }
}

const CA_DATA = 'certificate-authority-data';

type Fields = Record<string, unknown>;

/** A number as it is written: a token may look like one, and has more digits than we could keep (spec 60, section 17, trap 5). */
class WrittenNumber {
  readonly text: string;
  readonly tag: string;

  constructor(text: string, tag: string) {
    this.text = text;
    this.tag = tag;
  }
}

const keyOf = (key: unknown) => (key instanceof WrittenNumber ? key.text : key);

const VERBATIM = CORE_SCHEMA.withTags(asWritten(intCoreTag), asWritten(floatCoreTag), {
  ...mapTag,
  addPair: (fields: Fields, key: unknown, value: unknown) => mapTag.addPair(fields, keyOf(key), value),
  has: (fields: Fields, key: unknown) => mapTag.has(fields, keyOf(key)),
});

function asWritten({ tagName, implicitFirstChars, resolve }: typeof intCoreTag) {
  return defineScalarTag<WrittenNumber>(tagName, {
    implicit: true,
    implicitFirstChars,
    resolve: (text, isExplicit, name) =>
      resolve(text, isExplicit, name) === NOT_RESOLVED ? NOT_RESOLVED : new WrittenNumber(text, tagName),
    identify: (value: unknown) => value instanceof WrittenNumber && value.tag === tagName,
    represent: ({ text }: WrittenNumber) => text,
  });
}

function parse(bytes: Uint8Array): Fields | undefined {
  try {
    const value = load(Buffer.from(bytes).toString('utf8'), { schema: VERBATIM });
    return isFields(value) ? value : undefined;
  } catch {
    // The parser quotes its input.
    return undefined;
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
