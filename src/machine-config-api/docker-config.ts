/** Credentials for one registry, the four members that are kept (spec 50, PS-5). */
export interface RegistryAuth {
  readonly username: string;
  readonly password: string;
  readonly email: string;
  readonly auth: string;
}

export type RegistryAuths = Readonly<Record<string, RegistryAuth>>;

/** A pull secret that is not what it should be. The message never quotes it. */
export class DockerConfigError extends Error {
  override readonly name = 'DockerConfigError';
}

/** The legacy form of a modern pull secret: what is below `auths`. */
export function toDockercfg(text: string): string {
  return JSON.stringify(authsOf(parseObject(text)) ?? null);
}

/**
 * The modern form of a pull secret of either form, and whether it had to be converted (spec 50, PS-7). An object whose
 * `auths` is a mapping is modern, also when that is empty: 4.16 takes that for the legacy form and wraps it once more.
 */
export function toDockerConfigJson(text: string): { text: string; converted: boolean } {
  const object = parseObject(text);
  if (authsOf(object) !== undefined) return { text, converted: false };
  return { text: JSON.stringify({ auths: object }), converted: true };
}

/** The entries of a pull secret of either form. */
export function parseDockerConfig(text: string): RegistryAuths {
  const object = parseObject(text);
  return entriesOf(authsOf(object) ?? object);
}

/** The entries of a pull secret of the legacy form: hosts at the top level. */
export function parseDockercfg(text: string): RegistryAuths {
  return entriesOf(parseObject(text));
}

/** The entries of a pull secret of the modern form; none where there is no `auths`. */
export function parseDockerConfigJson(text: string): RegistryAuths {
  return entriesOf(authsOf(parseObject(text)) ?? {});
}

/** The modern form of entries: hosts ascending, every entry with all four members (spec 50, PS-5). */
export function encodeDockerConfigJson(auths: RegistryAuths): string {
  const hosts = Object.keys(auths).sort(byBytes);
  return JSON.stringify({ auths: Object.fromEntries(hosts.map(host => [host, auths[host]])) });
}

type JsonObject = Record<string, unknown>;

function authsOf(object: JsonObject): JsonObject | undefined {
  const auths = object['auths'];
  if (auths === undefined || auths === null) return undefined;
  if (!isObject(auths)) throw new DockerConfigError('expected auths to be an object of registries');
  return auths;
}

function entriesOf(object: JsonObject): RegistryAuths {
  // Without a prototype: a host may be called __proto__.
  const entries: Record<string, RegistryAuth> = Object.create(null) as Record<string, RegistryAuth>;
  for (const [host, entry] of Object.entries(object)) {
    if (entry !== null && !isObject(entry))
      throw new DockerConfigError(`expected the entry of ${host} to be an object`);
    const member = (name: string): string => {
      const value = entry?.[name];
      if (value === undefined || value === null) return '';
      if (typeof value !== 'string') throw new DockerConfigError(`expected ${name} of ${host} to be a text`);
      return value;
    };
    entries[host] = {
      username: member('username'),
      password: member('password'),
      email: member('email'),
      auth: member('auth'),
    };
  }
  return entries;
}

function parseObject(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser quotes its input, which is secret.
    throw new DockerConfigError(`expected JSON, found ${text.length} characters that are not`);
  }
  if (value === null) return {};
  if (!isObject(value)) throw new DockerConfigError('expected a JSON object');
  return value;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
