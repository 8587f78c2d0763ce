import type { Certificate } from './certificate.ts';
import { canonicalHost, parseIp } from './hosts.ts';

/**
 * Whether a certificate is good for a host, by its subject alternative names alone. An IP address, in brackets or not, is
 * looked up among the addresses only; a name matches case-insensitively, `*` standing for exactly one leftmost label.
 */
export function hostMatches(certificate: Pick<Certificate, 'dnsNames' | 'ipAddresses'>, host: string): boolean {
  const literal = /^\[(.+)\]$/.exec(host)?.[1] ?? host;
  if (parseIp(literal)) return certificate.ipAddresses.includes(canonicalHost(literal));
  const wanted = lowerCase(host);
  const labels = isHostname(wanted) ? wanted.replace(/\.$/, '').split('.') : undefined;
  return certificate.dnsNames.some(name => {
    const pattern = lowerCase(name);
    return labels && isPattern(pattern)
      ? patternMatches(pattern.split('.'), labels)
      : pattern === wanted && wanted !== '';
  });
}

function patternMatches(pattern: readonly string[], labels: readonly string[]): boolean {
  return (
    pattern.length === labels.length && pattern.every((part, i) => (i === 0 && part === '*') || part === labels[i])
  );
}

/** ASCII only: Unicode case rules have no place in DNS labels. */
const lowerCase = (text: string): string => text.replaceAll(/[A-Z]/g, letter => letter.toLowerCase());

const LABEL = /^[a-z0-9_][a-z0-9_-]*$/;

const isHostname = (text: string): boolean =>
  text
    .replace(/\.$/, '')
    .split('.')
    .every(label => LABEL.test(label));

const isPattern = (text: string): boolean =>
  text !== '*' && text.split('.').every((label, i) => LABEL.test(label) || (i === 0 && label === '*'));
