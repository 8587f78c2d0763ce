import { createHash, createPublicKey, X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readCertificates, readPrivateKey } from '../pki/pem.ts';

/** When a server reads a file again: as soon as it changes, at every handshake, or only when it starts (spec 20, section 7). */
export type Reload = 'watch' | 'handshake' | 'start';

export type InputKind = 'pair' | 'bundle' | 'key' | 'file' | 'directory';

/** Something a server reads from the disk. */
export interface InputSpec {
  readonly name: string;
  readonly kind: InputKind;
  /** For a pair: the certificate, then the key. */
  readonly paths: readonly string[];
  readonly reload: Reload;
  /** A client is told of the CAs in it, so that it can choose what to show. */
  readonly isListed?: boolean | undefined;
  /** A pair with more than one certificate is refused: what signs is one. */
  readonly isAlone?: boolean | undefined;
}

/** What the world may know of what is loaded: nothing of a private key, nothing of a file that may hold secrets. */
export interface LoadedReport {
  readonly name: string;
  readonly reload: Reload;
  readonly paths: readonly string[];
  readonly loadedAt: string;
  /** SHA-256 of each certificate, or of the public half of a key. */
  readonly certificates?: readonly string[];
  /** The disk says something else by now. */
  readonly isStale: boolean;
  /** Why the last change was not taken. */
  readonly refused?: string;
}

interface Loaded {
  readonly contents: readonly Buffer[];
  readonly certificates: readonly string[] | undefined;
  readonly at: Date;
}

/** One input with what was last loaded of it. Only what can be used is ever loaded; anything else leaves the old in place. */
export class StandInInput {
  readonly spec: InputSpec;
  readonly #now: () => Date;
  #loaded: Loaded;
  #refused: string | undefined;

  /** Throws when it cannot be used: at the start that is fatal, as in the real server. */
  constructor(spec: InputSpec, now: () => Date) {
    this.spec = spec;
    this.#now = now;
    this.#loaded = this.#load(readContents(spec));
  }

  /** The text of a file as it is loaded. */
  text(index = 0): string {
    return (this.#loaded.contents[index] ?? Buffer.alloc(0)).toString();
  }

  /** Reads again. True when something new is loaded now. */
  reload(): boolean {
    try {
      const contents = readContents(this.spec);
      if (isSame(contents, this.#loaded.contents)) {
        this.#refused = undefined;
        return false;
      }
      this.#loaded = this.#load(contents);
      this.#refused = undefined;
      return true;
    } catch (error) {
      this.#refused = error instanceof Error ? error.message : String(error);
      return false;
    }
  }

  report(): LoadedReport {
    const { name, reload, paths } = this.spec;
    const { at, certificates } = this.#loaded;
    return {
      name,
      reload,
      paths,
      loadedAt: at.toISOString(),
      ...(certificates === undefined ? {} : { certificates }),
      isStale: this.#isStale(),
      ...(this.#refused === undefined ? {} : { refused: this.#refused }),
    };
  }

  get refused(): string | undefined {
    return this.#refused;
  }

  #isStale(): boolean {
    try {
      return !isSame(readContents(this.spec), this.#loaded.contents);
    } catch {
      return true;
    }
  }

  #load(contents: readonly Buffer[]): Loaded {
    return { contents, certificates: digests(this.spec, contents), at: this.#now() };
  }
}

/** Digests of what is public; throws when the content cannot be used. */
function digests(
  { kind, name, paths, isAlone }: InputSpec,
  contents: readonly Buffer[],
): readonly string[] | undefined {
  const text = (contents[0] ?? Buffer.alloc(0)).toString();
  switch (kind) {
    case 'pair': {
      const { certificates } = readCertificates(text);
      if (isAlone && certificates.length !== 1)
        throw new Error(`${name}: expected exactly one certificate in ${paths[0]}, found ${certificates.length}`);
      const leaf = new X509Certificate(certificates[0]?.der ?? Buffer.alloc(0));
      if (!leaf.checkPrivateKey(readPrivateKey((contents[1] ?? Buffer.alloc(0)).toString()))) {
        throw new Error(`${name}: the private key in ${paths[1]} does not belong to the certificate in ${paths[0]}`);
      }
      return certificates.map(({ der }) => sha256(der));
    }
    case 'bundle':
      return readCertificates(text).certificates.map(({ der }) => sha256(der));
    case 'key':
      return [sha256(createPublicKey(readPrivateKey(text)).export({ format: 'der', type: 'spki' }))];
    case 'file':
    case 'directory':
      return undefined;
  }
}

function readContents({ kind, paths }: InputSpec): Buffer[] {
  if (kind !== 'directory') return paths.map(path => readFileSync(path));
  return paths.flatMap(path => {
    if (!statSync(path).isDirectory()) return [readFileSync(path)];
    const names = readdirSync(path)
      .filter(name => !name.startsWith('.'))
      .sort();
    return names.map(name => readFileSync(join(path, name)));
  });
}

function isSame(a: readonly Buffer[], b: readonly Buffer[]): boolean {
  return a.length === b.length && a.every((content, index) => content.equals(b[index] as Buffer));
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
