import { verbosityOf } from '../../staticpod/verbosity.ts';
import type { Config, KubeAPIServerSpec } from '../resources.ts';
import { isMapping, mergeConfigs, valueAt } from './merge.ts';

/** What of the pod depends on the cluster (spec 20, 4.3). */
export interface PodValues {
  readonly verbosity: number;
  readonly gracefulTerminationSeconds: number;
  /** How long the container that makes room for a new server may take. */
  readonly setupTimeoutSeconds: number;
  readonly gcPercent: number;
  /** Sorted, so that the manifest does not change without a reason. */
  readonly proxy: readonly { readonly name: string; readonly value: string }[];
}

type Specified = Pick<KubeAPIServerSpec, 'logLevel' | 'observedConfig' | 'unsupportedConfigOverrides'>;

/** 70 s until load balancers have noticed, 60 s for requests under way, 5 s to be safe. */
const GRACEFUL_TERMINATION_SECONDS = 135;
/** 10 s until the port is free, 65 s for requests of the old server, 10 s to be safe. */
const SETUP_EXTRA_SECONDS = 85;
const GC_PERCENT = { least: 63, most: 100 } as const;

/** Throws where a value is not what the pod can be made from. */
export function podValues({ logLevel, observedConfig, unsupportedConfigOverrides }: Specified): PodValues {
  const config = mergeConfigs(observedConfig, unsupportedConfigOverrides);
  const graceful = gracefulSecondsIn(config);
  const gcPercent = integerAt(config, 'garbageCollectionTargetPercentage') ?? GC_PERCENT.most;
  return {
    verbosity: verbosityOf(logLevel),
    gracefulTerminationSeconds: graceful,
    setupTimeoutSeconds: graceful + SETUP_EXTRA_SECONDS,
    gcPercent: Math.min(Math.max(gcPercent, GC_PERCENT.least), GC_PERCENT.most),
    proxy: proxyVariables(observedConfig ?? {}),
  };
}

/** No text means the usual time here, as it does in 4.16. */
function gracefulSecondsIn(config: Config): number {
  const field = 'gracefulTerminationDuration';
  if (valueAt(config, [field]) === '') return GRACEFUL_TERMINATION_SECONDS;
  const seconds = integerAt(config, field) ?? GRACEFUL_TERMINATION_SECONDS;
  if (seconds < 0) throw new Error(`expected no negative number in ${field}, found ${seconds}`);
  return seconds;
}

/** Numbers come as text; undefined where there is none. */
function integerAt(config: Config, field: string): number | undefined {
  const value = valueAt(config, [field]);
  if (value === undefined) return undefined;
  const number = typeof value === 'string' && /^[+-]?\d+$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw new Error(`expected a text with a whole number in ${field}, found ${JSON.stringify(value)}`);
}

function proxyVariables(observed: Config): PodValues['proxy'] {
  const own = valueAt(observed, ['targetconfigcontroller']) ?? {};
  if (!isMapping(own)) throw new Error('expected a mapping in targetconfigcontroller of the observed config');
  const proxy = valueAt(own, ['proxy']);
  if (proxy === undefined) return [];
  if (!isMapping(proxy)) throw new Error('expected a mapping in targetconfigcontroller.proxy of the observed config');
  return Object.entries(proxy)
    .map(([name, value]) => {
      if (typeof value === 'string') return { name, value };
      throw new Error(`expected a text in targetconfigcontroller.proxy.${name}, found ${JSON.stringify(value)}`);
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
