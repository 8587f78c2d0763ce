import { TAG } from '../pki/der-write.ts';
import { nameAttributes, nameText } from '../pki/name.ts';

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
  for (const { type, tag, content } of nameAttributes(der, 'name')) {
    const text = textOf(tag, content);
    const name = NAMED.get(type);
    // Go writes the text it has read anew.
    if (name === undefined) others.unshift(`${type}=#${nameText(text).toString('hex')}`);
    else values.set(name, SINGLE.has(name) ? [text] : [...(values.get(name) ?? []), text]);
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

/** Backslashes before what would read as syntax: `, + " \ < > ;`, a leading `#` or blank, a trailing blank. */
function escaped(value: string): string {
  return value
    .replaceAll(/[,+"\\<>;]/g, '\\$&')
    .replace(/^[# ]/, '\\$&')
    .replace(/(?<=.) $/, '\\ ');
}
