import { isDeepStrictEqual } from 'node:util';
import { load } from 'js-yaml';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { KUBERNETES_YAML } from '../../kube/yaml-schema.ts';
import { isFields } from '../exchange.ts';
import { RESTART } from '../names.ts';
import { flagsOf } from '../static-pods.ts';
import { NodeFault } from './file-text.ts';

/** The manifest of a static pod as text, in which single values are changed and every other byte, comments included, stays. */
export class ManifestText {
  readonly text: string;
  readonly pod: Pod;
  readonly #path: string;

  /** Throws `NodeFault`. */
  constructor(text: string, path: string) {
    this.text = text;
    this.#path = path;
    const pod = parsed(text);
    if (!isFields(pod?.metadata) || !Array.isArray(pod?.spec?.containers) || pod.spec.containers.length === 0)
      throw new NodeFault(`${path}: expected the manifest of a pod, found something else`);
    this.pod = pod;
  }

  get restart(): string | undefined {
    return this.pod.metadata?.annotations?.[RESTART];
  }

  get flags(): ReadonlyMap<string, string> {
    return flagsOf(this.pod);
  }

  get command(): readonly string[] {
    const [container] = this.pod.spec?.containers ?? [];
    return [...(container?.command ?? []), ...(container?.args ?? [])];
  }

  /** The same manifest with this value of our annotation: its kubelet starts the pod anew. */
  withRestart(value: string): ManifestText {
    const expected = structuredClone(this.pod);
    expected.metadata = {
      ...expected.metadata,
      annotations: { ...expected.metadata?.annotations, [RESTART]: value },
    };
    return this.#seen(annotated(this.text, value), expected, `the annotation ${RESTART}`);
  }

  /** The same manifest with other values of flags that it has. */
  withFlags(values: Readonly<Record<string, string>>): ManifestText {
    const expected = structuredClone(this.pod);
    const [container] = expected.spec?.containers ?? [];
    let { text } = this;
    for (const [name, value] of Object.entries(values)) {
      const word = new RegExp(`^--${name}=.*$`, 's');
      for (const words of [container?.command ?? [], container?.args ?? []]) {
        for (const [index, found] of words.entries()) if (word.test(found)) words[index] = `--${name}=${value}`;
      }
      const line = new RegExp(`^([ \\t]*-[ \\t]+["']?--${name}=)[^\\s"'#]*`, 'gm');
      text = text.replace(line, (_, before: string) => before + value);
    }
    const missing = Object.keys(values).find(name => !this.flags.has(name));
    if (missing !== undefined) throw new NodeFault(`${this.#path}: expected the flag --${missing}, found none`);
    return this.#seen(text, expected, `the flags ${Object.keys(values).join(', ')}`);
  }

  #seen(text: string | undefined, expected: Pod, what: string): ManifestText {
    if (text === undefined || !isDeepStrictEqual(parsed(text), expected))
      throw new NodeFault(`${this.#path} is written in a way in which ${what} cannot be changed`);
    return new ManifestText(text, this.#path);
  }
}

/** In block style, as kubeadm writes: `metadata:` at the margin, what is in it below. Anything else is left to people. */
function annotated(text: string, value: string): string | undefined {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const lines = text.split(eol);
  const metadata = lines.findIndex(line => /^metadata:[ \t]*(#.*)?$/.test(line));
  if (metadata < 0) return undefined;
  const end = endOfBlock(lines, metadata, 0);
  const child = lines.findIndex((line, at) => at > metadata && at < end && isContent(line));
  if (child < 0) return undefined;
  const indent = indentOf(lines[child] ?? '');
  const spaces = ' '.repeat(indent);
  const own = lines.findIndex(
    (line, at) => at > metadata && at < end && new RegExp(`^ {${indent}}annotations:`).test(line),
  );
  if (own < 0) {
    lines.splice(metadata + 1, 0, `${spaces}annotations:`, `${spaces}${spaces || '  '}${RESTART}: ${quoted(value)}`);
    return lines.join(eol);
  }
  if (!/^ *annotations:[ \t]*(#.*)?$/.test(lines[own] ?? '')) {
    // An empty one, in the other style.
    if (!/^ *annotations:[ \t]*(\{\}|null|~)[ \t]*(#.*)?$/.test(lines[own] ?? '')) return undefined;
    lines.splice(own, 1, `${spaces}annotations:`, `${spaces}${spaces}${RESTART}: ${quoted(value)}`);
    return lines.join(eol);
  }
  const ownEnd = endOfBlock(lines, own, indent);
  const first = lines.findIndex((line, at) => at > own && at < ownEnd && isContent(line));
  const inner = ' '.repeat(first < 0 ? indent * 2 : indentOf(lines[first] ?? ''));
  const line = `${inner}${RESTART}: ${quoted(value)}`;
  const there = lines.findIndex(
    (found, at) => at > own && at < ownEnd && found.trimStart().replaceAll(/["']/g, '').startsWith(`${RESTART}:`),
  );
  if (there < 0) lines.splice(own + 1, 0, line);
  else lines.splice(there, 1, line);
  return lines.join(eol);
}

function endOfBlock(lines: readonly string[], start: number, indent: number): number {
  const next = lines.findIndex((line, at) => at > start && isContent(line) && indentOf(line) <= indent);
  return next < 0 ? lines.length : next;
}

function isContent(line: string): boolean {
  return line.trim() !== '' && !line.trimStart().startsWith('#');
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function quoted(value: string): string {
  return JSON.stringify(value);
}

function parsed(text: string): Pod | undefined {
  try {
    const value = load(text, { schema: KUBERNETES_YAML, maxAliases: 0 });
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
