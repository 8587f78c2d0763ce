import type { IncomingHttpHeaders } from 'node:http';
import type { Authorizer } from '../auth/authorize.ts';
import { forbiddenError } from '../auth/forbidden.ts';
import { authenticated, type User } from '../auth/user.ts';
import { badRequest } from '../status.ts';

const EXTRA = 'impersonate-extra-';

/** The user a request is made as: its own, or the one it impersonates if it may. Throws 403. */
export function effectiveUser(headers: IncomingHttpHeaders, user: User, authorizer: Authorizer): User {
  const name = one(headers['impersonate-user']);
  const uid = one(headers['impersonate-uid']);
  const groups = many(headers['impersonate-group']);
  const extra = Object.entries(headers)
    .filter(([header]) => header.startsWith(EXTRA))
    .map(([header, value]) => [unescaped(header.slice(EXTRA.length)), many(value)] as const);
  if (name === undefined) {
    if (uid !== undefined || groups.length > 0 || extra.length > 0) {
      throw badRequest('requested impersonation without a user name');
    }
    return user;
  }
  const [, account] = /^system:serviceaccount:([^:]+:[^:]+)$/.exec(name) ?? [];
  const [namespace = '', accountName = ''] = account?.split(':') ?? [];
  if (account === undefined) require('users', name);
  else require('serviceaccounts', accountName, namespace);
  for (const group of groups) require('groups', group);
  if (uid !== undefined) require('uids', uid, '', 'authentication.k8s.io');
  for (const [key, values] of extra) {
    for (const text of values) require('userextras', text, '', 'authentication.k8s.io', key);
  }
  const implied = account === undefined ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  return authenticated({
    name,
    uid: uid ?? '',
    groups: groups.length > 0 ? groups : implied,
    extra: Object.fromEntries(extra),
  });

  function require(resource: string, subject: string, namespaceOf = '', group = '', subresource = ''): void {
    const attributes = {
      user,
      verb: 'impersonate',
      group,
      version: group === '' ? 'v1' : '',
      resource,
      subresource,
      namespace: namespaceOf,
      name: subject,
    };
    const { verdict, reason } = authorizer.authorize(attributes);
    if (verdict !== 'allow') throw forbiddenError(attributes, reason);
  }
}

/** A key with a broken escape is taken as it is, as the real server does. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value || undefined;
}

/** Repeated headers arrive joined by commas over HTTP/1 and apart over HTTP/2. */
function many(value: string | string[] | undefined): string[] {
  if (value === undefined) return [];
  return (Array.isArray(value) ? value : value.split(',')).map(text => text.trim());
}
