import { join, normalize } from 'node:path';

/** A directory or file that a container knows under one path and the machine under another. */
export interface PathMapping {
  readonly inside: string;
  readonly outside: string;
}

/**
 * The mounts of a container that is only a process: nothing can be mounted without privileges, so the paths themselves are
 * translated. In arguments and environment the node does it; in files that name further files (`config.yaml`) a program of
 * ours does it with the map it finds in `ROTUNDA_PATH_MAP`.
 */
export class PathMap {
  readonly #mappings: readonly PathMapping[];
  readonly #mentions: RegExp | undefined;

  constructor(mappings: readonly PathMapping[]) {
    this.#mappings = mappings
      .map(({ inside, outside }) => ({ inside: withoutSlash(normalize(inside)), outside: withoutSlash(outside) }))
      .filter(({ inside }) => inside !== '' && inside !== '/')
      // The longest path wins, as with mounts.
      .sort((a, b) => b.inside.length - a.inside.length);
    const paths = this.#mappings.map(({ inside }) => escapeRegExp(inside)).join('|');
    this.#mentions = paths === '' ? undefined : new RegExp(`${NOT_INSIDE_A_PATH}(?:${paths})${END_OF_A_NAME}`, 'g');
  }

  static fromEnv(env: Readonly<Record<string, string | undefined>>): PathMap {
    const text = env.ROTUNDA_PATH_MAP;
    return new PathMap(text ? (JSON.parse(text) as PathMapping[]) : []);
  }

  toEnv(): string {
    return JSON.stringify(this.#mappings);
  }

  /** Where a path of the container is on the machine; a path that nothing is mounted at stays. */
  outside(path: string): string {
    const normal = normalize(path);
    for (const { inside, outside } of this.#mappings) {
      if (normal === inside || normal.startsWith(`${inside}/`)) return join(outside, normal.slice(inside.length));
    }
    return path;
  }

  /** A text with every mention of a mounted path translated: an argument, a shell script, a value. */
  rewrite(text: string): string {
    if (this.#mentions === undefined) return text;
    return text.replace(this.#mentions, path => this.outside(path));
  }
}

const NOT_INSIDE_A_PATH = String.raw`(?<![\w./-])`;
const END_OF_A_NAME = String.raw`(?![\w.-])`;

function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
