import { DerReader } from './der-read.ts';
import { contextPrimitive, element, namedBits, octetString, oid, sequence, TAG, TRUE } from './der-write.ts';
import { PkiError } from './error.ts';
import { formatIp, parseIp } from './ip.ts';
import { MAX_EXTENSIONS } from './limits.ts';

export type KeyUsage =
  | 'digitalSignature'
  | 'nonRepudiation'
  | 'keyEncipherment'
  | 'dataEncipherment'
  | 'keyAgreement'
  | 'keyCertSign'
  | 'cRLSign'
  | 'encipherOnly'
  | 'decipherOnly';

/** What the extensions of a certificate, or those a request asks for, say. */
export interface Extensions {
  readonly keyUsages: KeyUsage[];
  /** `clientAuth`, `serverAuth`, or the dotted object identifier of any other. */
  readonly extKeyUsages: string[];
  /** Whether basic constraints are present at all. */
  readonly hasBasicConstraints: boolean;
  readonly isCA: boolean;
  readonly pathLength: number | undefined;
  readonly subjectKeyId: Buffer | undefined;
  readonly authorityKeyId: Buffer | undefined;
  readonly dnsNames: string[];
  /** Canonical text (spec 10, 5.6). */
  readonly ipAddresses: string[];
  readonly emailAddresses: string[];
  readonly uris: string[];
  /** Every extension in order, for those who need the bytes. */
  readonly extensions: readonly Extension[];
}

export interface Extension {
  readonly oid: string;
  readonly critical: boolean;
  readonly value: Buffer;
}

/** The extensions to be written. Absent or empty means: leave the extension out. */
export interface ExtensionValues {
  readonly keyUsages?: readonly KeyUsage[];
  readonly extKeyUsages?: readonly string[];
  readonly basicConstraints?: { readonly isCA: boolean };
  readonly subjectKeyId?: Buffer | undefined;
  readonly authorityKeyId?: Buffer | undefined;
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  readonly extra?: readonly Extension[];
}

export const OID = {
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  authorityKeyId: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
} as const;

export const ANY_EXTENDED_KEY_USAGE = '2.5.29.37.0';

/** The list of extensions in the order of spec 10, 5.1, as one DER SEQUENCE. */
export function encodeExtensions(values: ExtensionValues): Buffer {
  const { keyUsages = [], extKeyUsages = [], basicConstraints, dnsNames = [], ipAddresses = [], extra = [] } = values;
  const list: Buffer[] = [];
  if (keyUsages.length > 0) list.push(extension(OID.keyUsage, true, namedBits(keyUsages.map(bitOf))));
  if (extKeyUsages.length > 0) list.push(extension(OID.extKeyUsage, false, sequence(...extKeyUsages.map(usageOid))));
  if (basicConstraints) {
    list.push(extension(OID.basicConstraints, true, basicConstraints.isCA ? sequence(TRUE) : sequence()));
  }
  if (values.subjectKeyId) list.push(extension(OID.subjectKeyId, false, octetString(values.subjectKeyId)));
  if (values.authorityKeyId) {
    const keyIdentifier = element(contextPrimitive(0), values.authorityKeyId);
    list.push(extension(OID.authorityKeyId, false, sequence(keyIdentifier)));
  }
  if (dnsNames.length > 0 || ipAddresses.length > 0) {
    list.push(extension(OID.subjectAltName, false, sequence(...dnsNames.map(dnsName), ...ipAddresses.map(ipAddress))));
  }
  for (const { oid: type, critical, value } of extra) list.push(extension(type, critical, value));
  return sequence(...list);
}

/** Reads a SEQUENCE of extensions. */
export function parseExtensions(list: DerReader, what: string): Extensions {
  const result = noExtensions();
  const extensions: Extension[] = [];
  const seen = new Set<string>();
  while (!list.atEnd) {
    const fields = list.enter(TAG.sequence, 'extension');
    const type = fields.oid('type');
    const critical = fields.peek() === TAG.boolean && fields.boolean('critical');
    const value = fields.next(TAG.octetString, 'value').content;
    if (seen.has(type)) throw new PkiError('DER_INVALID', `${what}: extension ${type} occurs twice`);
    seen.add(type);
    extensions.push({ oid: type, critical, value });
    if (extensions.length > MAX_EXTENSIONS) {
      throw new PkiError('TOO_LARGE', `${what}: more than ${MAX_EXTENSIONS} extensions`);
    }
    Object.assign(result, readValue(type, value, what));
  }
  return { ...result, extensions };
}

/** What a certificate without extensions says. */
export function noExtensions(): Extensions {
  return {
    keyUsages: [],
    extKeyUsages: [],
    hasBasicConstraints: false,
    isCA: false,
    pathLength: undefined,
    subjectKeyId: undefined,
    authorityKeyId: undefined,
    dnsNames: [],
    ipAddresses: [],
    emailAddresses: [],
    uris: [],
    extensions: [],
  };
}

function readValue(type: string, value: Buffer, what: string): Partial<Extensions> {
  return FIELDS[type]?.(new DerReader(value, `${what}: extension ${type}`)) ?? {};
}

const FIELDS: Record<string, (reader: DerReader) => Partial<Extensions>> = {
  [OID.keyUsage]: reader => ({
    keyUsages: reader.namedBits('usages', KEY_USAGES.length).map(bit => KEY_USAGES[bit]!),
  }),
  [OID.extKeyUsage]: reader => {
    const usages = reader.enter(TAG.sequence, 'usages');
    const extKeyUsages: string[] = [];
    while (!usages.atEnd) {
      const dotted = usages.oid('usage');
      extKeyUsages.push(USAGE_NAMES.get(dotted) ?? dotted);
    }
    return { extKeyUsages };
  },
  [OID.basicConstraints]: reader => {
    const fields = reader.enter(TAG.sequence, 'constraints');
    const isCA = fields.peek() === TAG.boolean && fields.boolean('CA');
    const pathLength = fields.peek() === TAG.integer ? Number(fields.integer('path length')) : undefined;
    if (pathLength !== undefined && pathLength < 0) throw new PkiError('DER_INVALID', 'path length is negative');
    return { hasBasicConstraints: true, isCA, pathLength };
  },
  [OID.subjectKeyId]: reader => ({ subjectKeyId: reader.next(TAG.octetString, 'key identifier').content }),
  [OID.authorityKeyId]: reader => {
    const fields = reader.enter(TAG.sequence, 'identifier');
    return { authorityKeyId: fields.optional(contextPrimitive(0), 'key identifier')?.content };
  },
  [OID.subjectAltName]: reader => subjectAltNames(reader.enter(TAG.sequence, 'names')),
};

function subjectAltNames(names: DerReader): Partial<Extensions> {
  const { dnsNames, ipAddresses, emailAddresses, uris } = noExtensions();
  while (!names.atEnd) {
    const { tag, content } = names.any('name');
    if (tag === contextPrimitive(1)) emailAddresses.push(ascii(content));
    else if (tag === contextPrimitive(2)) dnsNames.push(ascii(content));
    else if (tag === contextPrimitive(6)) uris.push(ascii(content));
    else if (tag === contextPrimitive(7)) ipAddresses.push(ipText(content));
  }
  return { dnsNames, ipAddresses, emailAddresses, uris };
}

function ascii(content: Buffer): string {
  if (content.some(byte => byte >= 0x80)) throw new PkiError('DER_INVALID', 'a subject alternative name is not ASCII');
  return content.toString('latin1');
}

function ipText(content: Buffer): string {
  if (content.length === 4 || content.length === 16) return formatIp(content);
  throw new PkiError('DER_INVALID', `an IP address has 4 or 16 bytes, found ${content.length}`);
}

const KEY_USAGES: readonly KeyUsage[] = [
  'digitalSignature',
  'nonRepudiation',
  'keyEncipherment',
  'dataEncipherment',
  'keyAgreement',
  'keyCertSign',
  'cRLSign',
  'encipherOnly',
  'decipherOnly',
];

function bitOf(usage: KeyUsage): number {
  const bit = KEY_USAGES.indexOf(usage);
  if (bit < 0) throw new PkiError('TEMPLATE_INVALID', `unknown key usage ${JSON.stringify(usage)}`);
  return bit;
}

const USAGE_OIDS: Record<string, string> = { serverAuth: '1.3.6.1.5.5.7.3.1', clientAuth: '1.3.6.1.5.5.7.3.2' };

const USAGE_NAMES = new Map(Object.entries(USAGE_OIDS).map(([name, dotted]) => [dotted, name]));

function usageOid(usage: string): Buffer {
  const dotted = USAGE_OIDS[usage] ?? usage;
  if (DOTTED_OID.test(dotted)) return encodedOid(dotted);
  const expected = 'expected clientAuth, serverAuth or a dotted object identifier';
  throw new PkiError('TEMPLATE_INVALID', `unknown extended key usage: ${expected}, found ${JSON.stringify(usage)}`);
}

const DOTTED_OID = /^[0-2](\.\d{1,39}){1,30}$/;

function dnsName(name: string): Buffer {
  return element(contextPrimitive(2), Buffer.from(name, 'latin1'));
}

function ipAddress(text: string): Buffer {
  const bytes = parseIp(text);
  if (!bytes) throw new PkiError('TEMPLATE_INVALID', `expected an IP address, found ${JSON.stringify(text)}`);
  return element(contextPrimitive(7), bytes);
}

function extension(type: string, critical: boolean, value: Buffer): Buffer {
  return critical
    ? sequence(encodedOid(type), TRUE, octetString(value))
    : sequence(encodedOid(type), octetString(value));
}

const WELL_KNOWN = new Map<string, Buffer>(
  [...Object.values(OID), ...Object.values(USAGE_OIDS)].map(dotted => [dotted, oid(dotted)]),
);

const encodedOid = (dotted: string): Buffer => WELL_KNOWN.get(dotted) ?? oid(dotted);
