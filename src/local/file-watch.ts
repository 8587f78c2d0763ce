import { type FSWatcher, realpathSync, watch } from 'node:fs';
import { dirname } from 'node:path';

/** Changes that come together are one change. */
const SETTLE_MS = 20;
/** A user may have so many watches on a machine, 128 as kernels come, and others may have them all: then only looking helps. */
const UNWATCHED_MS = 1000;

/**
 * Notices when one of these files may have changed. A directory may be replaced as a whole by renaming a link, so both the
 * directory of a file and the one above are watched; a slow look besides catches what watching misses, and a quick one takes the place of a
 * watch that cannot be had.
 */
export class FileWatch {
  readonly #directories: readonly string[];
  readonly #onChange: () => void;
  readonly #recheckMs: number;
  readonly #watchers = new Map<string, { readonly real: string; readonly watcher: FSWatcher }>();
  readonly #watchDirectory: typeof watch;
  #settling: NodeJS.Timeout | undefined;
  #rechecking: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(paths: readonly string[], onChange: () => void, recheckMs: number, watchDirectory: typeof watch = watch) {
    this.#directories = [...new Set(paths.flatMap(path => [dirname(path), dirname(dirname(path))]))];
    this.#onChange = onChange;
    this.#recheckMs = recheckMs;
    this.#watchDirectory = watchDirectory;
  }

  start(): void {
    // What has changed since it was read, and before anybody watched, is seen as well.
    this.#fire();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#settling);
    clearTimeout(this.#rechecking);
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  /** True when every directory that is there is watched. */
  #arm(): boolean {
    let isComplete = true;
    for (const directory of this.#directories) {
      const real = realPath(directory);
      const known = this.#watchers.get(directory);
      if (known !== undefined && known.real === real) continue;
      known?.watcher.close();
      this.#watchers.delete(directory);
      if (real === undefined) continue;
      try {
        const watcher = this.#watchDirectory(real, () => this.#soon());
        watcher.on('error', () => this.#soon());
        this.#watchers.set(directory, { real, watcher });
      } catch {
        // Gone between the two, or nobody may watch any more.
        isComplete = false;
      }
    }
    return isComplete;
  }

  #soon(): void {
    this.#settling ??= setTimeout(() => this.#fire(), SETTLE_MS);
  }

  #fire(): void {
    clearTimeout(this.#settling);
    this.#settling = undefined;
    clearTimeout(this.#rechecking);
    if (this.#isStopped) return;
    const againMs = this.#arm() ? this.#recheckMs : Math.min(UNWATCHED_MS, this.#recheckMs);
    this.#rechecking = setTimeout(() => this.#fire(), againMs);
    this.#rechecking.unref();
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
