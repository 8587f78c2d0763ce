import type { CopyRule } from '../copies.ts';
import type { Config } from '../resources.ts';
import { mergeConfigs, prunedTo } from '../target-config/merge.ts';
import { oauthMetadata, serviceAccountIssuer, webhookAuthenticator } from './authentication.ts';
import { cloudProvider } from './cloud.ts';
import { corsAllowedOrigins } from './cors.ts';
import { namedCertificates, userClientCA } from './named-certificates.ts';
import { nodePortRange, proxyVariables, restrictedNetworks, servicesSubnet } from './network.ts';
import { type Observation, type ObserveInputs, type Observer, unchanged } from './observation.ts';
import { encryption, etcdServers } from './storage.ts';
import { termination } from './termination.ts';

/** Everybody who looks at the cluster's configuration. */
export const OBSERVERS: readonly Observer[] = [
  namedCertificates,
  userClientCA,
  corsAllowedOrigins,
  termination,
  oauthMetadata,
  serviceAccountIssuer,
  webhookAuthenticator,
  encryption,
  etcdServers,
  cloudProvider,
  restrictedNetworks,
  servicesSubnet,
  nodePortRange,
  proxyVariables,
];

/** What all of them see together. Each speaks for its own paths only, and keeps there what it said before when it is in trouble. */
export function observeAll(
  inputs: ObserveInputs,
  previous: Config,
  observers: readonly Observer[] = OBSERVERS,
): {
  config: Config;
  copies: readonly CopyRule[];
  errors: readonly string[];
  events: NonNullable<Observation['events']>;
} {
  const observations = observers.map(observer => {
    const observation = observed(observer, inputs, prunedTo(previous, observer.paths));
    return { ...observation, config: prunedTo(observation.config, observer.paths) };
  });
  return {
    config: mergeConfigs(...observations.map(({ config }) => config)),
    copies: observations.flatMap(({ copies = [] }) => copies),
    errors: [...new Set(observations.flatMap(({ errors = [] }) => errors))],
    events: observations.flatMap(({ events = [] }) => events),
  };
}

/** An observer that fails over input nobody thought of is in trouble like any other: the others go on. */
function observed(observer: Observer, inputs: ObserveInputs, previous: Config): Observation {
  try {
    return observer.observe(inputs, previous);
  } catch (error) {
    const whose = observer.paths.map(path => path.join('.')).join(', ') || 'copies';
    return unchanged(previous, `observing ${whose}: ${(error as Error).message}`);
  }
}
