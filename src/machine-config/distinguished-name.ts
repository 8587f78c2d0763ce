import { DerReader } from '../pki/der-read.ts';
import { element, TAG } from '../pki/der-write.ts';

/** The attributes with a name of their own, in the order they are printed (spec 50, CT-5). */
const NAMED = new Map([
  ['2.5.4.5', 'SERIALNUMBER'],
  ['2.5.4.3', 'CN'],
  ['2.5.4.17', 'POSTALCODE'],
  ['2.5.4.9', 'STREET'],
  ['2.5.4.8', 'ST'],
  ['2.5.4.7', 'L'],
  ['2.5.4.11', 'OU'],
  ['2.5.4.10', 'O'],
  ['2.5.4.6', 'C'],
]);
/** Of these a name has one; where it has several, the last one counts. */
const SINGLE = new Set(['SERIALNUMBER', 'CN']);

/**
 * A DER name the way Go prints it, whatever its order inside the certificate: `CN=root-ca,OU=openshift`. Attributes without
 * a name of their own come last, the last one first, as `OID=#hex` (spec 50, CT-5).
 */
export function distinguishedName(der: Buffer): string {
  const values = new Map<string, string[]>();
  const others: string[] = [];
  const rdns = new DerReader(der, 'name').enter(TAG.sequence, 'name');
  while (!rdns.atEnd) {
    const rdn = rdns.enter(TAG.set, 'relative distinguished name');
    while (!rdn.atEnd) {
      const attribute = rdn.enter(TAG.sequence, 'attribute');
      const type = attribute.oid('type');
      const { tag, content } = attribute.any('value');
      const text = textOf(tag, content);
      const name = NAMED.get(type);
      if (name === undefined) others.unshift(`${type}=#${encoded(text).toString('hex')}`);
      else values.set(name, SINGLE.has(name) ? [text] : [...(values.get(name) ?? []), text]);
    }
  }
  const named = [...NAMED.values()].flatMap(name => {
    const found = (values.get(name) ?? []).filter(value => !SINGLE.has(name) || value !== '');
    return found.length === 0 ? [] : [found.map(value => `${name}=${escaped(value)}`).join('+')];
  });
  return [...named, ...others].join(',');
}

function textOf(tag: number, content: Buffer): string {
  if (tag === TAG.utf8String) return content.toString('utf8');
  if (tag === TAG.bmpString && content.length % 2 === 0) return Buffer.from(content).swap16().toString('utf16le');
  return content.toString('latin1');
}

/** What Go makes of a text it has read and writes again. */
function encoded(text: string): Buffer {
  return PRINTABLE.test(text)
    ? element(TAG.printableString, Buffer.from(text, 'latin1'))
    : element(TAG.utf8String, Buffer.from(text, 'utf8'));
}

const PRINTABLE = /^[A-Za-z0-9 '()+,\-./:=?]*$/;

/** Backslashes before what would read as syntax: `, + " \ < > ;`, a leading `#` or blank, a trailing blank. */
function escaped(value: string): string {
  return value
    .replaceAll(/[,+"\\<>;]/g, '\\$&')
    .replace(/^[# ]/, '\\$&')
    .replace(/(?<=.) $/, '\\ ');
}
