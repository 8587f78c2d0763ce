import { CORE_SCHEMA, load } from 'js-yaml';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { at, OBSERVED_COPIES } from '../copies.ts';
import { activeIssuer, DEFAULT_ISSUER, trustedIssuers } from '../keys/issuer.ts';
import { CONFIG_NAMESPACE, MANAGED_NAMESPACE } from '../namespaces.ts';
import { mountedFile } from '../operand-objects.ts';
import { mergeConfigs, nested, valueAt } from '../target-config/merge.ts';
import { type Observer, unchanged } from './observation.ts';

const METADATA_FILE = ['authConfig', 'oauthMetadataFile'];

/** The discovery document of the OAuth server: the user's, else that of the built-in one (spec 20, 2.4). */
export const oauthMetadata: Observer = {
  paths: [METADATA_FILE],
  observe({ authentication }) {
    if (authentication === undefined) return { config: {} };
    const { spec, status } = authentication;
    const own = spec?.oauthMetadata?.name ?? '';
    const isBuiltIn = (spec?.type ?? '') === '' || spec?.type === 'IntegratedOAuth';
    const builtIn = isBuiltIn ? (status?.integratedOAuthMetadata?.name ?? '') : '';
    const source = own !== '' ? at(CONFIG_NAMESPACE, own) : builtIn !== '' ? at(MANAGED_NAMESPACE, builtIn) : undefined;
    const copies = [{ ...OBSERVED_COPIES.oauthMetadata, source }];
    if (source === undefined) return { config: {}, copies };
    return { config: nested(METADATA_FILE, mountedFile('ConfigMap', 'oauth-metadata', 'oauthMetadata')), copies };
  },
};

const WEBHOOK_FILE = ['apiServerArguments', 'authentication-token-webhook-config-file'];
const WEBHOOK_VERSION = ['apiServerArguments', 'authentication-token-webhook-version'];

/** The webhook that knows tokens; only with a kubeconfig that works without files (spec 20, 2.4). */
export const webhookAuthenticator: Observer = {
  paths: [WEBHOOK_FILE, WEBHOOK_VERSION],
  observe({ authentication, userSecret }, previous) {
    if (authentication === undefined) return { config: {} };
    const name = authentication.spec?.webhookTokenAuthenticator?.kubeConfig?.name ?? '';
    const rule = OBSERVED_COPIES.webhookAuthenticator;
    if (name === '') return { config: {}, copies: [{ ...rule, source: undefined }] };
    const secret = userSecret(name);
    const problem = secret === undefined ? 'not found' : kubeconfigProblem(secret);
    if (problem !== undefined) return unchanged(previous, `secret ${CONFIG_NAMESPACE}/${name}: ${problem}`);
    const config = mergeConfigs(
      nested(WEBHOOK_FILE, [mountedFile('Secret', 'webhook-authenticator', 'kubeConfig')]),
      nested(WEBHOOK_VERSION, ['v1']),
    );
    return { config, copies: [{ ...rule, source: at(CONFIG_NAMESPACE, name) }] };
  },
};

const ISSUER = ['apiServerArguments', 'service-account-issuer'];
const AUDIENCES = ['apiServerArguments', 'api-audiences'];
const JWKS_URI = ['apiServerArguments', 'service-account-jwks-uri'];

/** The active issuer first, then those still trusted; the default one is asked for its keys from outside (spec 20, 8.4). */
export const serviceAccountIssuer: Observer = {
  paths: [ISSUER, AUDIENCES, JWKS_URI],
  observe({ operator, infrastructure }, previous) {
    const issuers = operator?.status?.serviceAccountIssuers ?? [];
    const active = activeIssuer(issuers) ?? DEFAULT_ISSUER;
    if (active.includes(':') && !URL.canParse(active)) {
      return unchanged(previous, `service account issuer ${JSON.stringify(active)} has a colon but is no URL`);
    }
    // kube-apiserver does not start with an issuer that is named twice.
    const all = [...new Set([active, ...trustedIssuers(issuers)])];
    const external = infrastructure?.status?.apiServerURL ?? '';
    if (active === DEFAULT_ISSUER && external === '') {
      return unchanged(previous, 'APIServerURL missing from infrastructure/cluster');
    }
    const before = valueAt(previous, ISSUER);
    const old = Array.isArray(before) ? (before as readonly string[]) : [DEFAULT_ISSUER];
    const isSame = new Set(old).symmetricDifference(new Set(all)).size === 0;
    const message = `ServiceAccount issuer changed from ${old[0] ?? ''} to ${active}`;
    return {
      config: mergeConfigs(
        nested(ISSUER, all),
        nested(AUDIENCES, all),
        active === DEFAULT_ISSUER ? nested(JWKS_URI, [`${external}/openid/v1/jwks`]) : {},
      ),
      events: isSame ? [] : [{ type: 'Normal', reason: 'ObserveServiceAccountIssuer', message }],
    };
  },
};

const LARGEST_KUBECONFIG_CHARACTERS = 1024 * 1024;
type Fields = Readonly<Record<string, unknown>>;

/** Why a kubeconfig cannot be used inside the static pod; undefined when it can. */
function kubeconfigProblem(secret: Secret): string | undefined {
  const encoded = secret.data?.kubeConfig;
  if (encoded === undefined) return "missing required 'kubeConfig' key";
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  if (text === '') return "the 'kubeConfig' key is empty";
  if (text.length > LARGEST_KUBECONFIG_CHARACTERS) return 'the kubeconfig is too large';
  let config: Fields;
  try {
    config = (load(text, { schema: CORE_SCHEMA, maxAliases: 0 }) ?? {}) as Fields;
  } catch {
    // The parser's message could quote a credential.
    return 'failed to load kubeconfig';
  }
  const [clusters, users, contexts] = [list(config.clusters), list(config.users), list(config.contexts)];
  const [cluster, user] = [part(clusters[0], 'cluster'), part(users[0], 'user')];
  const context = contexts.find(({ name }) => name === config['current-context']);
  const chosen = part(context, 'context');
  const problems: [boolean, string][] = [
    [clusters.length !== 1, 'expected a single cluster'],
    [!cluster.server, 'the cluster has no server'],
    [Boolean(cluster['certificate-authority']), 'certificate-authority must be given as certificate-authority-data'],
    [users.length !== 1, 'expected a single user'],
    [!hasCredential(user), 'the user has no complete credential'],
    ...['client-certificate', 'client-key', 'tokenFile'].map((field): [boolean, string] => [
      Boolean(user[field]),
      `${field} must be given by its content, not as a file`,
    ]),
    [contexts.length !== 1, 'expected a single context'],
    [context === undefined, 'current-context is not among the contexts'],
    [context !== undefined && chosen.user !== users[0]?.name, 'the user of the context is not among the users'],
    [
      context !== undefined && chosen.cluster !== clusters[0]?.name,
      'the cluster of the context is not among the clusters',
    ],
  ];
  return problems.find(([isProblem]) => isProblem)?.[1];
}

function hasCredential(user: Fields): boolean {
  if (user.username) return Boolean(user.password);
  if (user['client-certificate-data']) return Boolean(user['client-key-data']);
  return Boolean(user.token);
}

function list(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter((item): item is Fields => typeof item === 'object' && item !== null) : [];
}

function part(entry: Fields | undefined, name: string): Fields {
  const value = entry?.[name];
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
