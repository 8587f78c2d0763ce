import { DerReader } from './der-read.ts';
import { element, oid, sequence, setOf, TAG } from './der-write.ts';
import { PkiError } from './error.ts';
import { MAX_GROUPS, MAX_SUBJECT_VALUE_CHARACTERS } from './limits.ts';

/** A distinguished name as found: the bytes, and the attributes this project looks at. */
export interface Name {
  readonly der: Buffer;
  /** The last one where there are several, the empty text where there is none. */
  readonly commonName: string;
  readonly organizations: string[];
  readonly organizationalUnits: string[];
  readonly serialNumber: string;
}

/** A distinguished name to be written. */
export interface NameAttributes {
  commonName: string;
  organizations?: readonly string[];
  organizationalUnits?: readonly string[];
  serialNumber?: string;
}

/** Reads a DER name. Chains are built by comparing `der`, never by comparing re-encoded attributes (spec 10, 5.1). */
export function parseName(der: Buffer, what: string): Name {
  const name = {
    der,
    commonName: '',
    organizations: [] as string[],
    organizationalUnits: [] as string[],
    serialNumber: '',
  };
  for (const { type, tag, content } of nameAttributes(der, what)) {
    const value = attributeText(tag, content, what);
    if (type === COMMON_NAME) name.commonName = value;
    else if (type === SERIAL_NUMBER) name.serialNumber = value;
    else if (type === ORGANIZATION) name.organizations.push(value);
    else if (type === ORGANIZATIONAL_UNIT) name.organizationalUnits.push(value);
  }
  return name;
}

export interface RawAttribute {
  /** As numbers with dots between. */
  readonly type: string;
  readonly tag: number;
  readonly content: Buffer;
}

/** The attributes of a DER name in their order, whatever set they stand in. */
export function* nameAttributes(der: Buffer, what: string): Generator<RawAttribute> {
  const rdns = new DerReader(der, what).enter(TAG.sequence, 'name');
  while (!rdns.atEnd) {
    const rdn = rdns.enter(TAG.set, 'relative distinguished name');
    while (!rdn.atEnd) {
      const attribute = rdn.enter(TAG.sequence, 'attribute');
      yield { type: attribute.oid('type'), ...attribute.any('value') };
    }
  }
}

/** Writes a name the way Go does: O, OU, CN, serialNumber; all values of one kind in one multi-valued RDN (spec 10, 5.5). */
export function encodeName(attributes: NameAttributes): Buffer {
  const { commonName, organizations = [], organizationalUnits = [], serialNumber = '' } = attributes;
  const rdns: Buffer[] = [];
  if (organizations.length > 0) rdns.push(rdn(ORGANIZATION, organizations));
  if (organizationalUnits.length > 0) rdns.push(rdn(ORGANIZATIONAL_UNIT, organizationalUnits));
  if (commonName !== '') rdns.push(rdn(COMMON_NAME, [commonName]));
  if (serialNumber !== '') rdns.push(rdn(SERIAL_NUMBER, [serialNumber]));
  return sequence(...rdns);
}

const COMMON_NAME = '2.5.4.3';
const SERIAL_NUMBER = '2.5.4.5';
const ORGANIZATION = '2.5.4.10';
const ORGANIZATIONAL_UNIT = '2.5.4.11';

const OID_DER = new Map([COMMON_NAME, SERIAL_NUMBER, ORGANIZATION, ORGANIZATIONAL_UNIT].map(type => [type, oid(type)]));

function rdn(type: string, values: readonly string[]): Buffer {
  if (values.length > MAX_GROUPS) {
    throw new PkiError('TOO_LARGE', `a subject holds at most ${MAX_GROUPS} values of one kind, found ${values.length}`);
  }
  return setOf(values.map(value => sequence(OID_DER.get(type)!, directoryString(value))));
}

function directoryString(value: string): Buffer {
  if (value.length > MAX_SUBJECT_VALUE_CHARACTERS) {
    const limit = `a subject value has at most ${MAX_SUBJECT_VALUE_CHARACTERS} characters`;
    throw new PkiError('TOO_LARGE', `${limit}, found ${value.length}`);
  }
  if (!value.isWellFormed()) throw new PkiError('SUBJECT_INVALID', 'a subject value is not well-formed Unicode text');
  return nameText(value);
}

/** PrintableString where every character allows it, else UTF8String. */
export function nameText(value: string): Buffer {
  return PRINTABLE.test(value)
    ? element(TAG.printableString, Buffer.from(value, 'latin1'))
    : element(TAG.utf8String, Buffer.from(value, 'utf8'));
}

const PRINTABLE = /^[A-Za-z0-9 '()+,\-./:=?]*$/;

/** Others write asterisks and ampersands as well, and Go reads them. */
const READ_AS_PRINTABLE = /^[A-Za-z0-9 '()+,\-./:=?*&]*$/;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function attributeText(tag: number, content: Buffer, what: string): string {
  switch (tag) {
    case TAG.printableString:
      if (READ_AS_PRINTABLE.test(content.toString('latin1'))) return content.toString('latin1');
      break;
    case TAG.numericString:
      if (/^[0-9 ]*$/.test(content.toString('latin1'))) return content.toString('latin1');
      break;
    case TAG.ia5String:
      if (content.every(byte => byte < 0x80)) return content.toString('latin1');
      break;
    case TAG.teletexString:
      return content.toString('latin1');
    case TAG.utf8String:
      try {
        return utf8.decode(content);
      } catch {
        break;
      }
    case TAG.bmpString:
      if (content.length % 2 === 0) return Buffer.from(content).swap16().toString('utf16le').replace(/\0$/, '');
      break;
    default:
  }
  throw new PkiError('DER_INVALID', `${what}: attribute value of tag 0x${tag.toString(16)} is not readable text`);
}
