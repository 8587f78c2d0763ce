/** Whether one registry or repository is inside of another one, or the same. `*.domain` is every host below a domain. */
export function isWithin(inner: string, outer: string): boolean {
  if (inner === outer || inner.startsWith(`${outer}/`)) return true;
  if (!outer.startsWith('*.')) return false;
  const [host = ''] = inner.split(inner.includes(':') ? ':' : '/');
  return host.endsWith(outer.slice(1)) && !host.includes('/');
}

/** Why this cannot be a registry or repository in a node's files; undefined if it can. Any other text is one, as upstream takes it. */
export function scopeProblem(scope: string): string | undefined {
  const isPlain = !scope.includes('*');
  if (scope === '' || !(isPlain || /^\*\.[^/@:*]*$/.test(scope))) return 'is no registry';
  if (UNPRINTABLE.test(scope)) return 'has a character that is none of a name';
  if (/^https?:\/\//.test(scope)) return 'has a scheme, which the container runtime refuses';
  return /^\/+$/.test(scope) ? 'is no registry' : undefined;
}

const UNPRINTABLE = /\p{C}/u;

// Upstream's expressions, written so that there is only one way to match: theirs would keep ours busy for ever.
const HOST_PART = '[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*';
const HOST = `${HOST_PART}(?:\\.${HOST_PART})*(?::[0-9]+)?`;
const PATH = '(?:/[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*)*';
const MIRROR = new RegExp(`^${HOST}${PATH}$`);
const WHOLE_HOST = new RegExp(`^${HOST}$`);
const SOURCE = new RegExp(`^(?:\\*(?:\\.${HOST_PART})+|${HOST}${PATH})$`);
/** Longer than any place. */
const LONGEST = 512;

/** Whether this is a registry as a whole. */
export function isHost(text: string): boolean {
  return text.length <= LONGEST && WHOLE_HOST.test(text);
}

export function isMirror(text: string): boolean {
  return text.length <= LONGEST && MIRROR.test(text);
}

export function isMirrored(text: string): boolean {
  return text.length <= LONGEST && SOURCE.test(text);
}
