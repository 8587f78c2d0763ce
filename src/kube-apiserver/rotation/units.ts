import { type RotationUnit, rotationUnit, type SignerConfig } from '../../certrotation/config.ts';
import { type CertCreator, clientCreator, servingCreator } from '../../certrotation/creator.ts';
import type { KeyAlgorithm } from '../../pki/keys.ts';
import {
  type CertificateObject,
  CHAIN_ANNOTATIONS,
  type Chain,
  type ChainCreator,
  KUBE_APISERVER_CHAINS,
  lifetimeOf,
} from '../chains.ts';
import type { HostnameSources } from './follow-hostnames.ts';

export interface UnitOptions {
  /** How long a day of rotation lasts, for every chain alike. */
  readonly dayMs: number;
  readonly hostnames: HostnameSources;
  /** The regeneration controller replaces only what is expired or unusable (spec 20, 5.2). */
  readonly onlyWhenExpired?: boolean | undefined;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  readonly chains?: readonly Chain[] | undefined;
}

/** The chains as units the rotation library keeps in order. */
export function rotationUnits(options: UnitOptions): RotationUnit[] {
  const { chains = KUBE_APISERVER_CHAINS } = options;
  return chains.map(({ controller, signer, bundle, target }) =>
    rotationUnit({
      name: controller,
      signer: configOf(signer, options),
      bundle: {
        ...bundle,
        additionalAnnotations: CHAIN_ANNOTATIONS,
        refreshOnlyWhenExpired: options.onlyWhenExpired,
      },
      target: { ...configOf(target, options), creator: creatorOf(target.creator, options.hostnames) },
    }),
  );
}

function configOf(object: CertificateObject, { dayMs, onlyWhenExpired, keyAlgorithm }: UnitOptions): SignerConfig {
  const { namespace, name } = object;
  return {
    namespace,
    name,
    ...lifetimeOf(object, dayMs),
    additionalAnnotations: CHAIN_ANNOTATIONS,
    refreshOnlyWhenExpired: onlyWhenExpired,
    keyAlgorithm,
  };
}

function creatorOf(creator: ChainCreator, sources: HostnameSources): CertCreator {
  if (creator.kind === 'client') return clientCreator(creator.user);
  if (typeof creator.hostnames !== 'string') return servingCreator({ hostnames: creator.hostnames });
  const source = sources[creator.hostnames];
  return servingCreator({ hostnames: () => source.get(), changes: signal => source.changes(signal) });
}
