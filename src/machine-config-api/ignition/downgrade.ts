import { downgradedTo2 } from './downgrade-v2.ts';
import { IGNITION_SHAPE, type ObjectShape } from './schema.ts';
import { levelOfSpec3 } from './spec-level.ts';
import { type IgnitionConfig, IgnitionError } from './types.ts';
import { checkIgnition } from './validate.ts';

/**
 * A document of 3.4 in an older version of the spec, for machines whose Ignition is older. What that version has no words for is left
 * out where it says nothing, and refused otherwise. Throws `IgnitionError`.
 */
export function downgraded(config: IgnitionConfig, version: '3.4.0' | '3.3.0' | '3.2.0' | '3.1.0' | '2.2.0'): object {
  if (version === '2.2.0') return downgradedTo2(withoutNewer(config, LAST_BEFORE_KERNEL_ARGUMENTS));
  const minor = Number(version.split('.')[1]);
  return { ...withoutNewer(config, minor), ignition: { ...config.ignition, version } };
}

/** Spec 2 is reached by way of 3.2. */
const LAST_BEFORE_KERNEL_ARGUMENTS = 2;
const LATEST = 4;

function withoutNewer(config: IgnitionConfig, minor: number): IgnitionConfig {
  if (minor === LATEST) return config;
  const { storage = {} } = config;
  for (const list of ['files', 'directories'] as const) {
    const special = (storage[list] ?? []).findIndex(({ mode = 0 }) => (mode & 0o7000) !== 0);
    if (special >= 0)
      throw new IgnitionError(`storage.${list}[${special}].mode`, `has bits that 3.${minor} does not know`);
  }
  const older = withoutNewerMembers(config as unknown as Members, IGNITION_SHAPE, minor, '');
  return checkIgnition(older as unknown as IgnitionConfig, { level: levelOfSpec3(minor) });
}

type Members = Readonly<Record<string, unknown>>;

function withoutNewerMembers(object: Members, shape: ObjectShape, minor: number, path: string): Members {
  const older: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(object)) {
    const member = shape.members[name];
    const field = path === '' ? name : `${path}.${name}`;
    if ((shape.since[name] ?? 0) > minor) {
      if (saysSomething(name, value)) throw new IgnitionError(field, `is not part of Ignition 3.${minor}.0`);
    } else if (member?.kind === 'list' && member.items.kind === 'object') {
      const { items } = member;
      older[name] = (value as Members[]).map((item, index) =>
        withoutNewerMembers(item, items, minor, `${field}[${index}]`),
      );
    } else if (member?.kind === 'object') {
      older[name] = withoutNewerMembers(value as Members, member, minor, field);
    } else {
      older[name] = value;
    }
  }
  return older;
}

/** Users and groups exist unless it is said that they should not; everything else is off unless it is on. */
function saysSomething(name: string, value: unknown): boolean {
  return name === 'shouldExist' && typeof value === 'boolean' ? !value : value !== false && value !== '';
}
