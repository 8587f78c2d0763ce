import { type FSWatcher, realpathSync, watch } from 'node:fs';
import { dirname } from 'node:path';

/** Changes that come together are one change. */
const SETTLE_MS = 20;

/**
 * Notices when one of these files may have changed. A directory may be replaced as a whole by renaming a link, so both the
 * directory of a file and the one above are watched; a slow look besides catches what watching misses.
 */
export class FileWatch {
  readonly #directories: readonly string[];
  readonly #onChange: () => void;
  readonly #recheckMs: number;
  readonly #watchers = new Map<string, { readonly real: string; readonly watcher: FSWatcher }>();
  #settling: NodeJS.Timeout | undefined;
  #rechecking: NodeJS.Timeout | undefined;

  constructor(paths: readonly string[], onChange: () => void, recheckMs: number) {
    this.#directories = [...new Set(paths.flatMap(path => [dirname(path), dirname(dirname(path))]))];
    this.#onChange = onChange;
    this.#recheckMs = recheckMs;
  }

  start(): void {
    this.#arm();
    this.#rechecking = setInterval(() => this.#fire(), this.#recheckMs);
    this.#rechecking.unref();
  }

  stop(): void {
    clearTimeout(this.#settling);
    clearInterval(this.#rechecking);
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #arm(): void {
    for (const directory of this.#directories) {
      const real = realPath(directory);
      const known = this.#watchers.get(directory);
      if (known !== undefined && known.real === real) continue;
      known?.watcher.close();
      this.#watchers.delete(directory);
      if (real === undefined) continue;
      try {
        const watcher = watch(real, () => this.#soon());
        watcher.on('error', () => this.#soon());
        this.#watchers.set(directory, { real, watcher });
      } catch {
        // Gone between the two; the directory above tells when it is back.
      }
    }
  }

  #soon(): void {
    this.#settling ??= setTimeout(() => this.#fire(), SETTLE_MS);
  }

  #fire(): void {
    clearTimeout(this.#settling);
    this.#settling = undefined;
    this.#arm();
    this.#onChange();
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
