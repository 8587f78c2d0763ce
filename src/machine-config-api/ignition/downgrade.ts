import { IGNITION_SHAPE, type ObjectShape } from './schema.ts';
import { type IgnitionConfig, IgnitionError, type IgnitionFile, type IgnitionResource } from './types.ts';

/**
 * A document of 3.4 in an older version of the spec, for machines whose Ignition is older. Throws `IgnitionError` where it says
 * something that version has no words for.
 */
export function downgraded(config: IgnitionConfig, version: '3.4.0' | '3.3.0' | '3.2.0' | '3.1.0' | '2.2.0'): object {
  if (version === '2.2.0') return asVersion2(config);
  const minor = Number(version.split('.')[1]);
  const newer = newerMember(config as unknown as Record<string, unknown>, IGNITION_SHAPE, minor, '');
  if (newer !== undefined) throw new IgnitionError(newer, `is not part of Ignition ${version}`);
  return { ...config, ignition: { ...config.ignition, version } };
}

/** The place of a member that came with a later minor version. */
function newerMember(
  object: Record<string, unknown>,
  shape: ObjectShape,
  minor: number,
  path: string,
): string | undefined {
  for (const [name, member] of Object.entries(shape.members)) {
    const value = object[name];
    const field = path === '' ? name : `${path}.${name}`;
    if (value === undefined) continue;
    if ((shape.since[name] ?? 0) > minor) return field;
    const parts = member.kind === 'list' ? (value as unknown[]) : [value];
    const inner = member.kind === 'list' ? member.items : member;
    if (inner.kind !== 'object') continue;
    for (const [index, part] of parts.entries()) {
      const place = member.kind === 'list' ? `${field}[${index}]` : field;
      const newer = newerMember(part as Record<string, unknown>, inner, minor, place);
      if (newer !== undefined) return newer;
    }
  }
  return undefined;
}

/** Spec 2 knows one file system by name, one content a file, and neither encrypted volumes nor kernel arguments. */
function asVersion2({ ignition, kernelArguments, passwd, storage = {}, systemd }: IgnitionConfig): object {
  if (kernelArguments !== undefined) throw new IgnitionError('kernelArguments', 'are not part of Ignition 2.2.0');
  for (const section of ['luks', 'disks', 'filesystems', 'raid'] as const) {
    if (storage[section] !== undefined)
      throw new IgnitionError(`storage.${section}`, 'cannot be said in Ignition 2.2.0');
  }
  const { files, directories, links } = storage;
  return {
    ignition: {
      version: '2.2.0',
      config: { append: ignition.config?.merge?.map(reference), replace: reference(ignition.config?.replace) },
      security: ignition.security,
      timeouts: ignition.timeouts,
    },
    passwd,
    storage: {
      files: files?.map(fileAsVersion2),
      directories: directories?.map(node => ({ filesystem: 'root', ...node })),
      links: links?.map(node => ({ filesystem: 'root', ...node })),
    },
    systemd,
  };
}

function fileAsVersion2({ append, contents, ...node }: IgnitionFile, index: number): object {
  if ((append ?? []).length + (contents === undefined ? 0 : 1) > 1) {
    throw new IgnitionError(`storage.files[${index}].append`, 'has several contents, which Ignition 2.2.0 has not');
  }
  const [appended] = append ?? [];
  return {
    filesystem: 'root',
    ...node,
    ...(appended === undefined ? { contents } : { append: true, contents: appended }),
  };
}

function reference(resource: IgnitionResource | undefined): object | undefined {
  return resource === undefined ? undefined : { source: resource.source, verification: resource.verification };
}
