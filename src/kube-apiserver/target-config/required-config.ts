import type { ConfigValue } from '../resources.ts';

/** What must have been observed before anything is rolled out (spec 20, 2.2.5). */
const REQUIRED_PATHS = [
  ['servingInfo', 'namedCertificates'],
  ['apiServerArguments', 'etcd-servers'],
  ['admission', 'pluginConfig', 'network.openshift.io/RestrictedEndpointsAdmission'],
] as const;

/** Why the observed configuration is not enough yet; undefined when it is. It may come as an object or as its text. */
export function missingConfig(observed: unknown): string | undefined {
  if (observed === undefined || observed === null || observed === '') return 'no observedConfig';
  let config = observed;
  if (typeof observed === 'string') {
    try {
      config = JSON.parse(observed);
    } catch (error) {
      return `error parsing config, ${(error as Error).message}`;
    }
  }
  // A text that says there is nothing is a configuration without anything in it.
  config ??= {};
  if (typeof config !== 'object' || Array.isArray(config)) return 'error parsing config, expected a mapping';
  for (const path of REQUIRED_PATHS) {
    const problem = problemAt(config, path);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemAt(config: unknown, path: readonly string[]): string | undefined {
  const where = path.join('.');
  let value = config as ConfigValue | undefined;
  for (const [depth, key] of path.entries()) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      const parent = path.slice(0, depth).join('.');
      return `error reading ${where} from config, expected a mapping at ${parent}`;
    }
    const mapping = value as Readonly<Record<string, ConfigValue>>;
    if (!Object.hasOwn(mapping, key)) return `${where} missing from config`;
    value = mapping[key] as ConfigValue;
    // A parent without a value holds nothing.
    if (value === null) return depth === path.length - 1 ? `${where} null in config` : `${where} missing from config`;
  }
  const isEmpty = value === '' || (Array.isArray(value) && value.length === 0);
  return isEmpty ? `${where} empty in config` : undefined;
}
