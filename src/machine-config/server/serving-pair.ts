import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';

/** A certificate and its key as they are in two files, which somebody may replace at any time. */
export class ServingPair {
  readonly #certFile: string;
  readonly #keyFile: string;
  #loaded: { readonly cert: Buffer; readonly key: Buffer };

  /** Throws when the files are missing or do not belong together: at the start that is fatal. */
  constructor(certFile: string, keyFile: string) {
    this.#certFile = certFile;
    this.#keyFile = keyFile;
    this.#loaded = this.#read();
    createSecureContext(this.#loaded);
  }

  get current(): { readonly cert: Buffer; readonly key: Buffer } {
    return this.#loaded;
  }

  /**
   * Reads the files again; true if they hold another pair than before. Throws when they hold none, and keeps the old one: the
   * two files may be seen half replaced.
   */
  reload(): boolean {
    const found = this.#read();
    if (found.cert.equals(this.#loaded.cert) && found.key.equals(this.#loaded.key)) return false;
    createSecureContext(found);
    this.#loaded = found;
    return true;
  }

  #read() {
    return { cert: readFileSync(this.#certFile), key: readFileSync(this.#keyFile) };
  }
}
