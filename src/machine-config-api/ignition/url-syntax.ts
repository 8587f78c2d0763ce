import { isIPv6 } from 'node:net';

/**
 * Whether Go's parser takes a text with a scheme for a URL (spec 60, 6.5), which is other than what browsers take: an empty host and
 * any number as port are fine, a broken escape is not.
 */
export function isParsable(url: string): boolean {
  const [, rest = '', fragment = ''] = /^[^:]*:([^#]*)#?(.*)$/s.exec(url) ?? [];
  const [hierarchy = ''] = rest.split('?', 1);
  if (BROKEN_ESCAPE.test(fragment)) return false;
  // `mailto:x` and the like are not looked into.
  if (!hierarchy.startsWith('/')) return true;
  const [, authority = '', path = ''] = /^(?:\/\/([^/]*))?(.*)$/s.exec(hierarchy) ?? [];
  const at = authority.lastIndexOf('@');
  return !BROKEN_ESCAPE.test(path) && isUser(authority.slice(0, at + 1)) && isHost(authority.slice(at + 1));
}

/** A URL as Go writes it after it has read it: the scheme in small letters, nothing where an authority or a fragment is empty. */
export function rewrittenUrl(url: string): string {
  return url
    .replace(/^[A-Za-z][A-Za-z0-9+.-]*(?=:)/, scheme => scheme.toLowerCase())
    .replace(/#$/, '')
    .replace(/^([a-z][a-z0-9+.-]*:)\/\/(?=$|[?#])/, '$1');
}

const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
const USER = /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/;
/** Brackets are for addresses of IPv6, perhaps with a zone; escapes for what is not ASCII. */
const ADDRESS = /^\[([^\]%]*)(?:%25[A-Za-z0-9\-_.~]+)?\]$/;
const NAME = /^(?:[A-Za-z0-9\-_.~!$&'()*+,;=:<>"\u0080-\uffff]|%25|%[89A-Fa-f][0-9A-Fa-f])*$/;

function isUser(user: string): boolean {
  return USER.test(user) && !BROKEN_ESCAPE.test(user);
}

function isHost(host: string): boolean {
  const colon = host.lastIndexOf(':');
  const end = colon > host.lastIndexOf(']') ? colon : host.length;
  const [name, port] = [host.slice(0, end), host.slice(end + 1)];
  if (!/^[0-9]*$/.test(port)) return false;
  return name.startsWith('[') ? isIPv6(ADDRESS.exec(name)?.[1] ?? '') : NAME.test(name);
}
