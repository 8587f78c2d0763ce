import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { type Clock, systemClock } from '../kube/clock.ts';
import type { Certificate } from '../pki/certificate.ts';
import { createAdmission } from './admission/admission.ts';
import { type Authenticator, createAuthenticator } from './auth/authenticate.ts';
import { firstDecision, mastersAuthorizer } from './auth/authorize.ts';
import { createCertificateAuthenticator } from './auth/certificate.ts';
import { signingKey, verificationKey } from './auth/jwt.ts';
import { createNodeAuthorizer } from './auth/node.ts';
import { createRbacAuthorizer } from './auth/rbac.ts';
import { createTokenIssuer, createTokenVerifier } from './auth/service-account.ts';
import type { SignerOptions } from './auth/signer.ts';
import { bootstrap } from './bootstrap.ts';
import { type RootCa, startControl } from './control/control.ts';
import { EmbeddedKube } from './embedded.ts';
import { Registry } from './kinds/registry.ts';
import { createLister } from './lister.ts';
import { systemRandom } from './random.ts';
import type { Core, PodLogs, Random } from './rest/core.ts';
import type { HistoryLimits } from './store/history.ts';
import type { Journal } from './store/journal.ts';
import { Store } from './store/store.ts';

export interface EngineOptions {
  readonly clock?: Clock | undefined;
  /** Where objects are kept between runs; absent: nowhere. */
  readonly journal?: Journal | undefined;
  readonly history?: HistoryLimits | undefined;
  readonly random?: Random | undefined;
  /** Signs the tokens of service accounts; absent: a new one. */
  readonly tokenKey?: KeyObject | undefined;
  /** The CAs of client certificates. Return the same array until they change. */
  readonly clientCas?: (() => readonly Certificate[]) | undefined;
  /** PEM of the certificates this server is verified with; published in every namespace, unless others do that. */
  readonly rootCa?: RootCa | undefined;
  readonly signer?: SignerOptions | undefined;
  readonly podLogs?: PodLogs | undefined;
  /** Told about failures inside the server. */
  readonly onError?: ((what: string, error: unknown) => void) | undefined;
}

/** A running API without a network: store, rules, controllers. */
export interface Engine {
  readonly core: Core;
  /** The API in the hands of an administrator. */
  readonly kube: EmbeddedKube;
  /** Resolves when the controllers inside have nothing to do any more. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

const ISSUER = 'https://kubernetes.default.svc';

/** Starts the API in process. Without a journal it lives in memory only: for tests and simulation. */
export async function startEngine(options: EngineOptions = {}): Promise<Engine> {
  const { clock = systemClock, rootCa = () => '', onError = () => {} } = options;
  const store = new Store({ clock, journal: options.journal, history: options.history });
  for (const damage of store.damage) onError('store', damage);
  const core = createCore(store, clock, options);
  const control = startControl(core, {
    rootCa,
    signer: options.signer,
    onError: (controller, key, error) => onError(`${controller} ${key}`, error),
  });
  const engine: Engine = {
    core,
    kube: new EmbeddedKube(core),
    idle: () => control.idle(),
    async close() {
      await control.close();
      store.close();
    },
  };
  try {
    await bootstrap(core);
    await control.idle();
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function createCore(store: Store, clock: Clock, options: EngineOptions): Core {
  const lister = createLister(store);
  const authorizer = firstDecision(mastersAuthorizer, createNodeAuthorizer(lister), createRbacAuthorizer(lister));
  const key = options.tokenKey ?? generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey;
  const signing = signingKey(key);
  return {
    store,
    registry: new Registry(),
    clock,
    lister,
    authorizer,
    authenticator: authenticatorFor(clock, lister, key, options.clientCas),
    tokens: createTokenIssuer({ issuer: ISSUER, key: () => signing, clock }),
    apiAudiences: [ISSUER],
    admission: createAdmission(store, lister, authorizer),
    random: options.random ?? systemRandom,
    podLogs: options.podLogs,
  };
}

function authenticatorFor(
  clock: Clock,
  subjects: ReturnType<typeof createLister>,
  key: KeyObject,
  clientCas: EngineOptions['clientCas'],
): Authenticator {
  const keys = [verificationKey(key)];
  const tokens = createTokenVerifier({ issuers: [ISSUER], keys: () => keys, apiAudiences: [ISSUER], subjects, clock });
  return createAuthenticator({
    ...(clientCas === undefined ? {} : { certificates: createCertificateAuthenticator({ clientCas, clock }) }),
    tokens: [tokens],
    apiAudiences: [ISSUER],
  });
}
