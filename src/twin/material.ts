import type { Certificate } from '../pki/certificate.ts';
import { readCertificates } from '../pki/pem.ts';
import { bundleIn, pairIn, type Texts } from '../trust/material.ts';

/** The certificates of some files, read once: the same content is the same object. */
export interface Material {
  readonly id: number;
  readonly certificates: readonly Certificate[];
  /** Why nobody could use it. */
  readonly problem?: string | undefined;
}

/** More contents than this are read anew. */
const MOST_KEPT = 20_000;

/** Reads what files hold; a content is parsed once. */
export class Materials {
  readonly #kept = new Map<string, Material>();
  readonly #known = { shown: new WeakMap<Texts, Material>(), trusted: new WeakMap<Texts, Material>() };
  #ids = 0;

  /** What somebody shows with these files. */
  shown(texts: Texts): Material {
    return this.#of('shown', texts, () => readCertificates(pairIn(texts).cert).certificates);
  }

  /** What somebody checks with these files. */
  trusted(texts: Texts): Material {
    return this.#of('trusted', texts, () => readCertificates(bundleIn(texts)).certificates);
  }

  #of(what: 'shown' | 'trusted', texts: Texts, read: () => readonly Certificate[]): Material {
    const same = this.#known[what].get(texts);
    if (same !== undefined) return same;
    const found = this.#find(what, texts, read);
    this.#known[what].set(texts, found);
    return found;
  }

  #find(what: string, texts: Texts, read: () => readonly Certificate[]): Material {
    const key = `${what}\n${Object.entries(texts).flat().join('\n')}`;
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    if (this.#kept.size >= MOST_KEPT) this.#kept.clear();
    const made = this.#read(read);
    this.#kept.set(key, made);
    return made;
  }

  #read(read: () => readonly Certificate[]): Material {
    const id = ++this.#ids;
    try {
      return { id, certificates: read() };
    } catch (error) {
      return { id, certificates: [], problem: (error as Error).message };
    }
  }
}
