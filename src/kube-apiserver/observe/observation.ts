import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { RecordedEvent } from '../../kube/events.ts';
import type { CopyRule } from '../copies.ts';
import type { APIServer, Authentication, Config, Infrastructure, KubeAPIServer, Network, Proxy } from '../resources.ts';

/** The cluster's configuration; what does not exist is undefined. */
export interface ObserveInputs {
  readonly apiServer?: APIServer | undefined;
  readonly authentication?: Authentication | undefined;
  readonly infrastructure?: Infrastructure | undefined;
  readonly network?: Network | undefined;
  readonly proxy?: Proxy | undefined;
  readonly operator?: KubeAPIServer | undefined;
  /** `openshift-etcd/etcd-endpoints`. */
  readonly etcdEndpoints?: ConfigMap | undefined;
  /** `openshift-config-managed/kube-cloud-config`. */
  readonly cloudConfig?: ConfigMap | undefined;
  /** `openshift-kube-apiserver/encryption-config`. */
  readonly encryptionConfig?: Secret | undefined;
  /** `openshift-config-managed/encryption-config-openshift-kube-apiserver`. */
  readonly encryptionSource?: Secret | undefined;
  /** A Secret of `openshift-config`. */
  readonly userSecret: (name: string) => Secret | undefined;
}

/** What one observer makes of it. */
export interface Observation {
  /** The part of the configuration it is responsible for. */
  readonly config: Config;
  /** Rules to be put in place; those for other destinations stay as they are. */
  readonly copies?: readonly CopyRule[] | undefined;
  readonly errors?: readonly string[] | undefined;
  readonly events?: readonly Omit<RecordedEvent, 'component'>[] | undefined;
}

/** Looks at one thing. `previous` is what it said last time: on trouble it says that again. */
export interface Observer {
  /** The paths in the configuration that are its own. */
  readonly paths: readonly (readonly string[])[];
  observe(inputs: ObserveInputs, previous: Config): Observation;
}

/** Nothing new can be said: the old configuration stays, the rules too, and the trouble is told. */
export function unchanged(previous: Config, error: string, event?: string): Observation {
  const events = event === undefined ? [] : [{ type: 'Warning', reason: event, message: error } as const];
  return { config: previous, errors: [error], events };
}
