import { isIP } from 'node:net';
import { dns1035Label, dnsLabel, dnsSubdomain, labelValue, type NameRule, qualifiedName } from '../name.ts';
import { isQuantity } from '../quantity.ts';
import { EvaluationError, Foreign, Optional, type Value } from './value.ts';

/** What Kubernetes adds to the language: addresses, URLs, quantities and the formats of names. */

class Address extends Foreign {
  readonly family: bigint;
  constructor(text: string) {
    super(text);
    this.family = BigInt(isIP(text));
  }
}

class Network extends Foreign {
  readonly address: Address;
  readonly bits: bigint;
  constructor(text: string) {
    super(text);
    const [address = '', bits = ''] = text.split('/');
    this.address = new Address(address);
    this.bits = BigInt(bits);
  }
}

class Link extends Foreign {
  readonly url: URL;
  constructor(text: string) {
    super(text);
    this.url = new URL(text, 'path:/');
  }

  get scheme(): string {
    return this.url.protocol === 'path:' ? '' : this.url.protocol.slice(0, -1);
  }
}

class Amount extends Foreign {}

class NameFormat extends Foreign {
  readonly rule: NameRule;
  constructor(name: string, rule: NameRule) {
    super(name);
    this.rule = rule;
  }
}

export const LIBRARY_FUNCTIONS: Readonly<Record<string, (value: Value) => Value | undefined>> = {
  isIP: value => (typeof value === 'string' ? isAddress(value) : undefined),
  ip: value => (typeof value === 'string' ? made(isAddress(value), () => new Address(value), 'IP address') : undefined),
  isCIDR: value => (typeof value === 'string' ? isCidr(value) : undefined),
  cidr: value =>
    typeof value === 'string' ? made(isCidr(value), () => new Network(value), 'network address') : undefined,
  isURL: value => (typeof value === 'string' ? isUrl(value) : undefined),
  url: value => (typeof value === 'string' ? made(isUrl(value), () => new Link(value), 'URL') : undefined),
  isQuantity: value => (typeof value === 'string' ? isQuantity(value) : undefined),
  quantity: value =>
    typeof value === 'string' ? made(isQuantity(value), () => new Amount(value), 'quantity') : undefined,
};

export const LIBRARY_METHODS: Readonly<Record<string, (on: Value, args: readonly Value[]) => Value | undefined>> = {
  family: on => (on instanceof Address ? on.family : undefined),
  prefixLength: on => (on instanceof Network ? on.bits : undefined),
  ip: on => (on instanceof Network ? on.address : undefined),
  getScheme: on => (on instanceof Link ? on.scheme : undefined),
  getHost: on => (on instanceof Link ? on.url.host : undefined),
  getHostname: on => (on instanceof Link ? on.url.hostname : undefined),
  getPort: on => (on instanceof Link ? on.url.port : undefined),
  getEscapedPath: on => (on instanceof Link ? on.url.pathname : undefined),
  getQuery: on => (on instanceof Link ? queryOf(on.url) : undefined),
  compareTo: (on, [other]) => ordered(on, other, order => BigInt(order)),
  isLessThan: (on, [other]) => ordered(on, other, order => order < 0),
  isGreaterThan: (on, [other]) => ordered(on, other, order => order > 0),
  validate: (on, [text]) => {
    if (!(on instanceof NameFormat) || typeof text !== 'string') return undefined;
    const faults = on.rule(text);
    return new Optional(faults.length === 0 ? undefined : faults);
  },
};

const FORMATS: Readonly<Record<string, NameRule>> = {
  dns1123Label: dnsLabel,
  dns1123Subdomain: dnsSubdomain,
  dns1035Label,
  qualifiedName,
  labelValue,
};

/** `format.dns1123Label()`; `undefined` for a format we do not have. */
export function namedFormat(name: string): Value | undefined {
  const rule = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
  return rule && new NameFormat(name, rule);
}

function made<T extends Foreign>(good: boolean, make: () => T, what: string): T {
  if (!good) throw new EvaluationError(`${what} parse error`);
  return make();
}

/** An IPv4 address dressed up as IPv6 is not taken for either. */
function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !/^::ffff:\d+\./i.test(text);
}

function isUrl(text: string): boolean {
  return text.startsWith('/') || URL.canParse(text);
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...more] = text.split('/');
  const family = isIP(address);
  return family !== 0 && more.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

function queryOf(url: URL): Value {
  const query = new Map<string, Value>();
  for (const name of url.searchParams.keys()) query.set(name, url.searchParams.getAll(name));
  return query;
}

function ordered(on: Value, other: Value | undefined, answer: (order: number) => Value): Value | undefined {
  if (!(on instanceof Amount) || !(other instanceof Amount)) return undefined;
  const [left, right] = [nanosOf(on.text), nanosOf(other.text)];
  return answer(left < right ? -1 : left > right ? 1 : 0);
}

const SUFFIXES: Readonly<Record<string, bigint>> = {
  n: 1n,
  u: 1000n,
  m: 1_000_000n,
  '': 10n ** 9n,
  k: 10n ** 12n,
  M: 10n ** 15n,
  G: 10n ** 18n,
  T: 10n ** 21n,
  P: 10n ** 24n,
  E: 10n ** 27n,
  Ki: 10n ** 9n * 2n ** 10n,
  Mi: 10n ** 9n * 2n ** 20n,
  Gi: 10n ** 9n * 2n ** 30n,
  Ti: 10n ** 9n * 2n ** 40n,
  Pi: 10n ** 9n * 2n ** 50n,
  Ei: 10n ** 9n * 2n ** 60n,
};

/** A quantity in billionths, the smallest part that a quantity can have. */
function nanosOf(text: string): bigint {
  const match = /^([+-]?)(\d*)\.?(\d*)([a-zA-Z]*)([+-]?\d*)$/.exec(text);
  const [, sign = '', whole = '', fraction = '', suffix = '', exponent = ''] = match ?? [];
  const digits = BigInt(whole + fraction || '0');
  const isPower = exponent !== '' && /^[eE]$/.test(suffix);
  const power = isPower ? clamp(Number(exponent)) : 0;
  const unit = isPower ? 10n ** 9n : (SUFFIXES[suffix] ?? 10n ** 9n);
  const scaled =
    (digits * unit * 10n ** BigInt(Math.max(0, power))) / 10n ** BigInt(fraction.length + Math.max(0, -power));
  return sign === '-' ? -scaled : scaled;
}

const LARGEST_POWER = 40;

function clamp(power: number): number {
  return Math.max(-LARGEST_POWER, Math.min(LARGEST_POWER, power));
}
