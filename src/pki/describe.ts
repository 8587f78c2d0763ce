import type { Certificate } from './certificate.ts';
import { ANY_EXTENDED_KEY_USAGE } from './extensions.ts';
import type { Name } from './name.ts';

/** What a description is made from. */
export type Described = Pick<Certificate, 'extKeyUsages' | 'dnsNames' | 'ipAddresses' | 'notBefore' | 'notAfter'> & {
  readonly subject: Pick<Name, 'commonName' | 'organizations'>;
  readonly issuer: Pick<Name, 'commonName'>;
};

/** One line about a certificate (spec 10, 3.3): reasons and logs quote it. */
export function describeCertificate(certificate: Described, now: Date): string {
  const { subject, issuer, extKeyUsages, ipAddresses, dnsNames } = certificate;
  const usages = extKeyUsages.map(usage => USAGES[usage] ?? usage).join(',');
  const groups = subject.organizations.length > 0 ? ` groups=[${subject.organizations.join(',')}]` : '';
  const hosts = [...ipAddresses, ...dnsNames];
  const names = hosts.length > 0 ? ` validServingFor=[${hosts.join(',')}]` : '';
  const issuedBy = issuer.commonName === subject.commonName ? '<self-signed>' : issuer.commonName;
  const times = `${time(certificate.notBefore)} to ${time(certificate.notAfter)} (now=${time(now)})`;
  return `${quote(subject.commonName)} [${usages}]${groups}${names} issuer=${quote(issuedBy)} (${times})`;
}

/** One line per certificate, numbered from 0. */
export function describeCertificates(certificates: readonly Described[], now: Date): string {
  return certificates.map((certificate, i) => `[#${i}]: ${describeCertificate(certificate, now)}`).join('\n');
}

/** Other usages print as their number in Go's enumeration, unknown ones as their object identifier. */
const USAGES: Record<string, string> = {
  clientAuth: 'client',
  serverAuth: 'serving',
  [ANY_EXTENDED_KEY_USAGE]: '0',
  '1.3.6.1.5.5.7.3.3': '3',
  '1.3.6.1.5.5.7.3.4': '4',
  '1.3.6.1.5.5.7.3.8': '8',
  '1.3.6.1.5.5.7.3.9': '9',
};

const quote = (text: string): string => JSON.stringify(text);

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `Jan 2 15:04:05 2006` in UTC, the day without a leading zero, the year with four digits. */
function time(at: Date): string {
  const clock = [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]
    .map(n => String(n).padStart(2, '0'))
    .join(':');
  const year = String(at.getUTCFullYear()).padStart(4, '0');
  return `${MONTHS[at.getUTCMonth()]} ${at.getUTCDate()} ${clock} ${year}`;
}
