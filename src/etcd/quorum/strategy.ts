import { boolYaml11Tag, CORE_SCHEMA, load } from 'js-yaml';
import { DELAYED_BOOTSTRAP } from '../names.ts';

/** How many members there must be before anything is taken down (spec 40, Q-4 and N-9). */
export type ScalingStrategy =
  | 'HAScalingStrategy'
  | 'DelayedHAScalingStrategy'
  | 'TwoNodeScalingStrategy'
  | 'DelayedTwoNodeScalingStrategy'
  | 'UnsafeScalingStrategy';

export interface StrategyQuestion {
  /** `HighlyAvailable`, `SingleReplica`, `DualReplica`, ...; empty: the cluster does not say. */
  readonly controlPlaneTopology: string;
  readonly namespaceAnnotations: Readonly<Record<string, string>>;
  /** As the API stores it, or as text. */
  readonly unsupportedConfigOverrides: unknown;
}

const UNSAFE_OVERRIDE = 'useUnsupportedUnsafeNonHANonProductionUnstableEtcd';

/** Which strategy a cluster is run with. Throws when its topology is not known. */
export function scalingStrategy(question: StrategyQuestion): ScalingStrategy {
  const { controlPlaneTopology: topology, namespaceAnnotations, unsupportedConfigOverrides } = question;
  const isUnsafe = isUnsafeOverride(unsupportedConfigOverrides);
  if (topology === '') throw new Error('failed to get control plane topology: ControlPlaneTopology was not set');
  if (isUnsafe || topology === 'SingleReplica') return 'UnsafeScalingStrategy';
  const isDelayed = DELAYED_BOOTSTRAP.some(annotation => namespaceAnnotations[annotation] !== undefined);
  if (topology === 'DualReplica') return isDelayed ? 'DelayedTwoNodeScalingStrategy' : 'TwoNodeScalingStrategy';
  return isDelayed ? 'DelayedHAScalingStrategy' : 'HAScalingStrategy';
}

/**
 * Whether somebody asked for a cluster that may be lost at any time. Throws for a text that is neither yes nor no; a value of any
 * other kind asks for nothing (spec 40, Q-4).
 */
export function isUnsafeOverride(overrides: unknown): boolean {
  const mapping = typeof overrides === 'string' ? parsed(overrides) : overrides;
  if (mapping === undefined || mapping === null) return false;
  if (typeof mapping !== 'object' || Array.isArray(mapping)) throw unknownStatus('a mapping', mapping);
  const value = Object.hasOwn(mapping, UNSAFE_OVERRIDE)
    ? (mapping as Record<string, unknown>)[UNSAFE_OVERRIDE]
    : undefined;
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string') return false;
  const answer = GO_BOOLEANS.get(value);
  if (answer === undefined) throw unknownStatus('true or false', value);
  return answer;
}

function unknownStatus(expected: string, found: unknown): Error {
  const what = JSON.stringify(found).slice(0, LONGEST_QUOTE_CHARACTERS);
  return new Error(`couldn't determine etcd unsupported override status: expected ${expected}, found ${what}`);
}

/** What Go's strconv.ParseBool takes. */
const GO_BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map(text => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map(text => [text, false] as const),
]);

const LARGEST_OVERRIDES_CHARACTERS = 64 * 1024;
const LONGEST_QUOTE_CHARACTERS = 100;
/** Upstream reads YAML 1.1, where `yes` and `on` are true. */
const SCHEMA = CORE_SCHEMA.withTags([boolYaml11Tag]);

function parsed(text: string): unknown {
  if (text.trim() === '') return undefined;
  if (text.length > LARGEST_OVERRIDES_CHARACTERS) {
    throw new Error(
      `unsupportedConfigOverrides: expected at most ${LARGEST_OVERRIDES_CHARACTERS} characters, found ${text.length}`,
    );
  }
  try {
    return load(text, { schema: SCHEMA, maxAliases: 0 });
  } catch (error) {
    throw new Error('unsupportedConfigOverrides is neither JSON nor YAML', { cause: error });
  }
}
