import { type FieldError, invalid } from './field-error.ts';
import { isObject } from './json.ts';
import type { JsonObject } from './schema.ts';

/** The syntax of names, label keys and values, and data keys, with the messages of the API server. */

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const DATA_KEY = '[-._a-zA-Z0-9]+';

const LONGEST_LABEL = 63;
const LONGEST_SUBDOMAIN = 253;

/** What is wrong with a name, one sentence for each fault. */
export type NameRule = (name: string) => string[];

export const dnsLabel: NameRule = syntax(
  LABEL,
  LONGEST_LABEL,
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  ['my-name', '123-abc'],
);

export const dnsSubdomain: NameRule = syntax(
  SUBDOMAIN,
  LONGEST_SUBDOMAIN,
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  ['example.com'],
);

export const dns1035Label: NameRule = syntax(
  LABEL_1035,
  LONGEST_LABEL,
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  ['my-name', 'abc-123'],
);

/** Names that only have to fit into a path: those of roles and bindings, which carry colons. */
export const pathSegment: NameRule = name => {
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  return ['/', '%'].filter(part => name.includes(part)).map(part => `may not contain '${part}'`);
};

export const labelValue: NameRule = syntax(
  `(${QUALIFIED})?`,
  LONGEST_LABEL,
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  ['MyValue', 'my_value', '12345'],
);

const configKey = syntax(
  DATA_KEY,
  LONGEST_SUBDOMAIN,
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
  ['key.name', 'KEY_NAME', 'key-name'],
);

/** Keys of Secrets and ConfigMaps, which become file names. */
export const dataKey: NameRule = key => {
  const faults = configKey(key);
  if (key === '.' || key === '..') faults.push(`must not be '${key}'`);
  else if (key.startsWith('..')) faults.push("must not start with '..'");
  return faults;
};

/** Not a name, but said in the same words: a share, such as `25%`. */
export const percentage: NameRule = syntax(
  '[0-9]+%',
  Infinity,
  "a valid percent string must be a numeric string followed by an ending '%'",
  ['1%', '93%'],
);

const qualifiedPart = syntax(
  QUALIFIED,
  LONGEST_LABEL,
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  ['MyName', 'my.name', '123-abc'],
);

/** Names of labels, annotations and finalizers: `name` or `prefix/name`. */
export const qualifiedName: NameRule = value => {
  const parts = value.split('/');
  if (parts.length > 2) {
    return [
      `a qualified name ${qualifiedPart('/')[0]} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = parts.at(-1) ?? '';
  const prefix = parts.length === 2 ? parts[0] : undefined;
  const faults = prefix === '' ? ['prefix part must be non-empty'] : [];
  if (prefix) faults.push(...dnsSubdomain(prefix).map(fault => `prefix part ${fault}`));
  if (name === '') faults.push('name part must be non-empty');
  faults.push(...qualifiedPart(name).map(fault => `name part ${fault}`));
  return faults;
};

/** The rule for the names of a kind. Most are DNS subdomains. */
export function nameRuleOf(group: string, kind: string): NameRule {
  return NAME_RULES[`${group}/${kind}`] ?? dnsSubdomain;
}

const NAME_RULES: Readonly<Record<string, NameRule>> = {
  '/Namespace': dnsLabel,
  '/Service': dns1035Label,
  'rbac.authorization.k8s.io/Role': pathSegment,
  'rbac.authorization.k8s.io/RoleBinding': pathSegment,
  'rbac.authorization.k8s.io/ClusterRole': pathSegment,
  'rbac.authorization.k8s.io/ClusterRoleBinding': pathSegment,
};

export function dnsLabelErrors(name: string, path: string): FieldError[] {
  return dnsLabel(name).map(fault => invalid(path, name, fault));
}

/** What is wrong with the keys of Secrets and ConfigMaps. */
export function dataKeyErrors(object: JsonObject, fields: readonly string[], path: string): FieldError[] {
  const prefix = path === '' ? '' : `${path}.`;
  return fields.flatMap(field => {
    const data = object[field];
    if (!isObject(data)) return [];
    return Object.keys(data).flatMap(key =>
      dataKey(key).map(fault => invalid(`${prefix}${field}[${key}]`, key, fault)),
    );
  });
}

function syntax(pattern: string, longest: number, message: string, examples: readonly string[]): NameRule {
  const whole = new RegExp(`^${pattern}$`);
  const shown = examples.map(example => `'${example}', `).join(' or ');
  return name => {
    const faults: string[] = [];
    const fits = Buffer.byteLength(name) <= longest;
    if (!fits) faults.push(`must be no more than ${longest} characters`);
    if (!whole.test(name)) {
      faults.push(`${message} (e.g. ${shown}regex used for validation is '${pattern}')`);
    }
    return faults;
  };
}
