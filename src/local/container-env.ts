import type { ConfigMap, Container, EnvVar, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';

/** What values may refer to. A missing object or key is undefined. */
export interface EnvSources {
  readonly pod: Pod;
  readonly nodeName: string;
  /** The address of the node, which is that of its pods too. */
  readonly address: string;
  secret(name: string): Promise<Secret | undefined>;
  configMap(name: string): Promise<ConfigMap | undefined>;
}

/** The variables a container asks for, in order, references resolved. Throws when something required is missing. */
export async function containerEnv(container: Container, sources: EnvSources): Promise<Record<string, string>> {
  const env: Record<string, string> = {};
  for (const { prefix = '', secretRef, configMapRef } of container.envFrom ?? []) {
    if (secretRef?.name !== undefined) {
      const secret = await required(sources.secret(secretRef.name), `secret "${secretRef.name}"`, secretRef.optional);
      for (const [key, value] of Object.entries(secret?.data ?? {})) env[prefix + key] = decode(value ?? '');
    }
    if (configMapRef?.name !== undefined) {
      const what = `configmap "${configMapRef.name}"`;
      const configMap = await required(sources.configMap(configMapRef.name), what, configMapRef.optional);
      for (const [key, value] of Object.entries(configMap?.data ?? {})) env[prefix + key] = value ?? '';
    }
  }
  for (const variable of container.env ?? []) {
    const value = await valueOf(variable, sources);
    if (value !== undefined) env[variable.name] = expand(value, env);
  }
  return env;
}

/** Replaces `$(NAME)` with a variable that is known; `$$(NAME)` stands for itself. */
export function expand(text: string, env: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\$|\$\(([A-Za-z_.-][\w.-]*)\)/g, (whole, name: string | undefined) => {
    if (name === undefined) return '$';
    return Object.hasOwn(env, name) ? (env[name] as string) : whole;
  });
}

/** A field of the pod as the downward API gives it; undefined when there is no such field. */
export function podField(fieldPath: string, { pod, nodeName, address }: EnvSources): string | undefined {
  const { metadata = {}, spec } = pod;
  const keyed = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(fieldPath);
  if (keyed !== null) return metadata[keyed[1] as 'labels' | 'annotations']?.[keyed[2] as string] ?? '';
  switch (fieldPath) {
    case 'metadata.name':
      return metadata.name ?? '';
    case 'metadata.namespace':
      return metadata.namespace ?? '';
    case 'metadata.uid':
      return metadata.uid ?? '';
    case 'metadata.labels':
      return keyValueLines(metadata.labels);
    case 'metadata.annotations':
      return keyValueLines(metadata.annotations);
    case 'spec.nodeName':
      return nodeName;
    case 'spec.serviceAccountName':
      return spec?.serviceAccountName ?? '';
    case 'status.hostIP':
    case 'status.hostIPs':
    case 'status.podIP':
    case 'status.podIPs':
      return address;
    default:
      return undefined;
  }
}

async function valueOf({ name, value, valueFrom }: EnvVar, sources: EnvSources): Promise<string | undefined> {
  if (valueFrom === undefined) return value ?? '';
  const { fieldRef, resourceFieldRef, secretKeyRef, configMapKeyRef } = valueFrom;
  if (fieldRef !== undefined) {
    const field = podField(fieldRef.fieldPath, sources);
    if (field === undefined) throw new Error(`variable ${name}: there is no field ${fieldRef.fieldPath}`);
    return field;
  }
  if (secretKeyRef !== undefined) {
    const secret = await sources.secret(secretKeyRef.name ?? '');
    const encoded = secret?.data?.[secretKeyRef.key];
    return optional(
      encoded && decode(encoded),
      `key "${secretKeyRef.key}" in secret "${secretKeyRef.name}"`,
      secretKeyRef.optional,
    );
  }
  if (configMapKeyRef !== undefined) {
    const { name: object, key } = configMapKeyRef;
    const configMap = await sources.configMap(object ?? '');
    return optional(configMap?.data?.[key], `key "${key}" in configmap "${object}"`, configMapKeyRef.optional);
  }
  // A process has what the machine has.
  return resourceFieldRef === undefined ? '' : '0';
}

async function required<T>(read: Promise<T | undefined>, what: string, isOptional = false): Promise<T | undefined> {
  return optional(await read, what, isOptional);
}

function optional<T>(value: T | undefined, what: string, isOptional = false): T | undefined {
  if (value === undefined && !isOptional) throw new Error(`${what} not found`);
  return value;
}

function keyValueLines(values: Readonly<Record<string, string | undefined>> | undefined): string {
  const sorted = Object.entries(values ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join('\n');
}

function decode(base64: string): string {
  return Buffer.from(base64, 'base64').toString();
}
