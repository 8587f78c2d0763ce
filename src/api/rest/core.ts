import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Clock } from '../../kube/clock.ts';
import type { KubeObject } from '../../kube/resource.ts';
import type { Authenticator } from '../auth/authenticate.ts';
import type { Authorizer } from '../auth/authorize.ts';
import type { TokenIssuer } from '../auth/service-account.ts';
import type { User } from '../auth/user.ts';
import type { Kind } from '../kinds/kind.ts';
import type { Registry } from '../kinds/registry.ts';
import type { Lister } from '../lister.ts';
import type { Store } from '../store/store.ts';

/** What the verbs work with. */
export interface Core {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly authorizer: Authorizer;
  readonly authenticator: Authenticator;
  readonly lister: Lister;
  readonly tokens: TokenIssuer;
  /** Who we are to a token that names no audience. */
  readonly apiAudiences: readonly string[];
  readonly admission: Admission;
  readonly random: Random;
  readonly podLogs: PodLogs | undefined;
}

/** Where the output of containers comes from: the nodes. */
export interface PodLogs {
  /** The output so far, and with `follow` what comes later. Throws `KubeError`. */
  read(
    pod: Pod,
    container: string,
    options: PodLogOptions,
  ): AsyncIterable<Uint8Array> | Promise<AsyncIterable<Uint8Array>>;
}

export interface PodLogOptions {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly tailLines?: number | undefined;
  readonly sinceSeconds?: number | undefined;
  readonly sinceTime?: Date | undefined;
  readonly limitBytes?: number | undefined;
  readonly signal: AbortSignal;
}

/** Where the names come from that the server makes up itself. */
export interface Random {
  uid(): string;
  /** Five characters to follow a `generateName`. */
  suffix(): string;
}

/** One request: who wants something, and of what. */
export interface Call {
  readonly user: User;
  readonly kind: Kind;
  /** Empty for cluster-scoped kinds and for all namespaces. */
  readonly namespace: string;
  /** Empty for collections. */
  readonly name: string;
  readonly subresource: string;
  /** Tells the client something that is no error. */
  readonly warn: (text: string) => void;
}

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export interface WriteParameters {
  readonly dryRun: boolean;
  readonly fieldManager: string;
  readonly fieldValidation: FieldValidation;
}

/** Looks at writes after they are decoded and before they are checked. Throws `KubeError` to refuse. */
export interface Admission {
  create(call: Call, object: KubeObject): KubeObject;
  update(call: Call, object: KubeObject, old: KubeObject): KubeObject;
  delete(call: Call, old: KubeObject): void;
}
