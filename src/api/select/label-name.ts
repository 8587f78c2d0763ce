const LONGEST_NAME = 63;
const LONGEST_VALUE = 63;
const LONGEST_PREFIX = 253;

const NAME_PATTERN = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const VALUE_PATTERN = `(${NAME_PATTERN})?`;
const SUBDOMAIN_PATTERN = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*';

const NAME = new RegExp(`^${NAME_PATTERN}$`);
const VALUE = new RegExp(`^${VALUE_PATTERN}$`);
const SUBDOMAIN = new RegExp(`^${SUBDOMAIN_PATTERN}$`);

const NAME_RULE = explain(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  NAME_PATTERN,
  ['MyName', 'my.name', '123-abc'],
);
const VALUE_RULE = explain(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  VALUE_PATTERN,
  ['MyValue', 'my_value', '12345'],
);
const SUBDOMAIN_RULE = explain(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  SUBDOMAIN_PATTERN,
  ['example.com'],
);

/** What is wrong with a qualified name (`[prefix/]name`: label keys, annotation keys, finalizers); empty when it is fine. */
export function qualifiedNameErrors(text: string): string[] {
  const parts = text.split('/');
  if (parts.length > 2) {
    return [`a qualified name ${NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const name = parts.at(-1) as string;
  const errors: string[] = [];
  if (parts.length === 2) {
    const prefix = parts[0] as string;
    if (prefix === '') errors.push('prefix part must be non-empty');
    else errors.push(...subdomainErrors(prefix).map(error => `prefix part ${error}`));
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (byteLength(name) > LONGEST_NAME) errors.push(`name part ${tooLong(LONGEST_NAME)}`);
  if (!NAME.test(name)) errors.push(`name part ${NAME_RULE}`);
  return errors;
}

/** What is wrong with a label value; empty when it is fine. */
export function labelValueErrors(text: string): string[] {
  const errors: string[] = [];
  if (byteLength(text) > LONGEST_VALUE) errors.push(tooLong(LONGEST_VALUE));
  if (!VALUE.test(text)) errors.push(VALUE_RULE);
  return errors;
}

/** What is wrong with a DNS subdomain, the form of most object names; empty when it is fine. */
export function subdomainErrors(text: string): string[] {
  const errors: string[] = [];
  if (byteLength(text) > LONGEST_PREFIX) errors.push(tooLong(LONGEST_PREFIX));
  if (!SUBDOMAIN.test(text)) errors.push(SUBDOMAIN_RULE);
  return errors;
}

function tooLong(limit: number): string {
  return `must be no more than ${limit} characters`;
}

function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

/** The double space after each example is how Kubernetes words it. */
function explain(rule: string, pattern: string, examples: readonly string[]): string {
  const list = examples.map(example => `'${example}', `).join(' or ');
  return `${rule} (e.g. ${list}regex used for validation is '${pattern}')`;
}
