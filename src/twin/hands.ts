import { basename } from 'node:path';
import { seconds } from '../kube/duration.ts';
import { certificatesIn } from '../pki/pem.ts';
import type { Takes } from '../trust/graph.ts';
import type { Texts } from '../trust/material.ts';
import type { Disk } from './disk.ts';
import type { Time } from './time.ts';

/** What a server watches by notification it has within moments, and by a look of its own within this time. */
const RELOAD_WITHIN_MS = seconds(60);

/**
 * What one process has in its hands of the files it reads: read at its start, taken when they change, or read when they are used, as the
 * trust graph says of each.
 */
export class Hands {
  readonly #disk: Disk;
  readonly #time: Time;
  readonly #kept = new Map<string, Kept>();
  readonly #onChange: () => void;
  isOver = false;

  constructor(disk: Disk, time: Time, onChange: () => void) {
    this.#disk = disk;
    this.#time = time;
    this.#onChange = onChange;
  }

  /** The files as the process has them; undefined: they are not there. */
  have(files: readonly string[], takes: Takes): Texts | undefined {
    const id = files.length === 1 ? (files[0] as string) : files.join('\n');
    const known = this.#kept.get(id);
    const isReadAnew = takes === 'per-handshake' || takes === 'on-use';
    if (known !== undefined && (!isReadAnew || known.version === this.#disk.version)) return known.texts;
    const texts = this.#read(files);
    const kept = known ?? { files, takes, texts, version: 0, isReloading: false };
    // Content that is the same stays the same object: whoever has looked at it need not look again.
    if (!isSame(kept.texts, texts)) kept.texts = texts;
    kept.version = this.#disk.version;
    this.#kept.set(id, kept);
    return kept.texts;
  }

  /** Something on the disk may have changed: what the process watches it will have in a while. */
  look(): void {
    for (const kept of this.#kept.values()) {
      if (kept.takes !== 'watch' || kept.isReloading) continue;
      const { files } = kept;
      if (isSame(this.#read(files), kept.texts)) continue;
      kept.isReloading = true;
      const afterMs = this.#time.random() * RELOAD_WITHIN_MS;
      void this.#time.after(afterMs).then(() => {
        kept.isReloading = false;
        if (this.isOver) return;
        const texts = this.#read(files);
        // What cannot be read is not taken: the last good content stays.
        if (texts !== undefined && !isWorse(texts, kept.texts)) kept.texts = texts;
        this.#onChange();
      });
    }
  }

  #read(files: readonly string[]): Texts | undefined {
    const texts: Record<string, string> = {};
    for (const file of files) {
      const text = this.#disk.text(file);
      if (text === undefined) return undefined;
      texts[basename(file)] = text;
    }
    return texts;
  }
}

interface Kept {
  readonly files: readonly string[];
  readonly takes: Takes;
  texts: Texts | undefined;
  /** Of the disk, when it was read. */
  version: number;
  isReloading: boolean;
}

/** Where certificates were there are none that could be read. */
function isWorse(after: Texts, before: Texts | undefined): boolean {
  const count = (texts: Texts) => certificatesIn(Object.values(texts).join('\n')).length;
  return before !== undefined && count(after) === 0 && count(before) > 0;
}

function isSame(a: Texts | undefined, b: Texts | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return Object.entries(a).every(([name, text]) => b[name] === text);
}
