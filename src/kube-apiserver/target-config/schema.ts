import type { Config, ConfigValue } from '../resources.ts';
import { isMapping } from './merge.ts';

/** What may stand at one place of a configuration. */
export type Schema =
  | 'text'
  | 'number'
  | 'boolean'
  /** One value of a flag: numbers and truth values stand for their text. */
  | 'argument'
  /** Somebody else's: everything passes. */
  | 'anything'
  | { readonly listOf: Schema }
  | { readonly mapOf: Schema }
  | { readonly fields: Readonly<Record<string, Schema>> };

const TEXTS: Schema = { listOf: 'text' };
const CERTIFICATE = { certFile: 'text', keyFile: 'text' } as const;

/** `KubeAPIServerConfig` of kubecontrolplane.config.openshift.io/v1 as 4.16 has it; what only the operator reads is not part of it. */
export const SERVER_CONFIG: Schema = {
  fields: {
    apiVersion: 'text',
    kind: 'text',
    admission: {
      fields: {
        pluginConfig: { mapOf: { fields: { location: 'text', configuration: 'anything' } } },
        enabledPlugins: TEXTS,
        disabledPlugins: TEXTS,
      },
    },
    aggregatorConfig: { fields: { proxyClientInfo: { fields: CERTIFICATE } } },
    apiServerArguments: { mapOf: { listOf: 'argument' } },
    auditConfig: {
      fields: {
        enabled: 'boolean',
        auditFilePath: 'text',
        maximumFileRetentionDays: 'number',
        maximumRetainedFiles: 'number',
        maximumFileSizeMegabytes: 'number',
        policyFile: 'text',
        policyConfiguration: 'anything',
        logFormat: 'text',
        webHookKubeConfig: 'text',
        webHookMode: 'text',
      },
    },
    authConfig: {
      fields: {
        oauthMetadataFile: 'text',
        requestHeader: {
          fields: {
            clientCA: 'text',
            clientCommonNames: TEXTS,
            usernameHeaders: TEXTS,
            groupHeaders: TEXTS,
            extraHeaderPrefixes: TEXTS,
          },
        },
        webhookTokenAuthenticators: { listOf: { fields: { configFile: 'text', cacheTTL: 'text' } } },
      },
    },
    consolePublicURL: 'text',
    corsAllowedOrigins: TEXTS,
    imagePolicyConfig: { fields: { internalRegistryHostname: 'text', externalRegistryHostnames: TEXTS } },
    kubeClientConfig: {
      fields: {
        kubeConfig: 'text',
        connectionOverrides: {
          fields: { acceptContentTypes: 'text', contentType: 'text', qps: 'number', burst: 'number' },
        },
      },
    },
    kubeletClientInfo: { fields: { port: 'number', ca: 'text', ...CERTIFICATE } },
    oauthConfig: {
      fields: {
        masterCA: 'text',
        masterURL: 'text',
        masterPublicURL: 'text',
        loginURL: 'text',
        assetPublicURL: 'text',
        alwaysShowProviderSelection: 'boolean',
        identityProviders: {
          listOf: {
            fields: {
              name: 'text',
              challenge: 'boolean',
              login: 'boolean',
              mappingMethod: 'text',
              provider: 'anything',
            },
          },
        },
        grantConfig: { fields: { method: 'text', serviceAccountMethod: 'text' } },
        sessionConfig: { fields: { sessionSecretsFile: 'text', sessionMaxAgeSeconds: 'number', sessionName: 'text' } },
        tokenConfig: {
          fields: {
            authorizeTokenMaxAgeSeconds: 'number',
            accessTokenMaxAgeSeconds: 'number',
            accessTokenInactivityTimeoutSeconds: 'number',
            accessTokenInactivityTimeout: 'text',
          },
        },
        templates: { fields: { login: 'text', providerSelection: 'text', error: 'text' } },
      },
    },
    projectConfig: { fields: { defaultNodeSelector: 'text' } },
    serviceAccountPublicKeyFiles: TEXTS,
    servicesNodePortRange: 'text',
    servicesSubnet: 'text',
    servingInfo: {
      fields: {
        bindAddress: 'text',
        bindNetwork: 'text',
        ...CERTIFICATE,
        clientCA: 'text',
        namedCertificates: { listOf: { fields: { names: TEXTS, ...CERTIFICATE } } },
        minTLSVersion: 'text',
        cipherSuites: TEXTS,
        maxRequestsInFlight: 'number',
        requestTimeoutSeconds: 'number',
      },
    },
    storageConfig: { fields: { urls: TEXTS, ca: 'text', ...CERTIFICATE, storagePrefix: 'text' } },
    userAgentMatchingConfig: {
      fields: {
        requiredClients: { listOf: { fields: { regex: 'text', httpVerbs: TEXTS } } },
        deniedClients: { listOf: { fields: { regex: 'text', httpVerbs: TEXTS, rejectionMessage: 'text' } } },
        defaultRejectionMessage: 'text',
      },
    },
  },
};

/**
 * The configuration without the fields its reader does not know, at every depth. Throws where a value is of another kind than its
 * reader expects: nothing is better than half a configuration (spec 20, 4.3.6).
 */
export function conforming(config: Config, schema: Schema): Config {
  return fit(config, schema, '') as Config;
}

function fit(value: ConfigValue, schema: Schema, path: string): ConfigValue {
  if (schema === 'anything') return value;
  if (value === null) {
    // Fields may be without a value, flags may not: they would be set to nothing.
    if (schema === 'argument') throw mismatch('a text', value, path);
    return value;
  }
  if (typeof schema === 'string') {
    if (isOne(schema, value)) return value;
    throw mismatch(`a ${schema === 'argument' ? 'text' : schema}`, value, path);
  }
  if ('listOf' in schema) {
    if (!Array.isArray(value)) throw mismatch('a list', value, path);
    return (value as readonly ConfigValue[]).map((item, index) => fit(item, schema.listOf, `${path}[${index}]`));
  }
  if (!isMapping(value)) throw mismatch('a mapping', value, path);
  const known = Object.entries(value).flatMap(([key, inner]) => {
    const wanted =
      'mapOf' in schema ? schema.mapOf : Object.hasOwn(schema.fields, key) ? schema.fields[key] : undefined;
    return wanted === undefined ? [] : [[key, fit(inner, wanted, path === '' ? key : `${path}.${key}`)] as const];
  });
  return Object.fromEntries(known);
}

function isOne(schema: 'text' | 'number' | 'boolean' | 'argument', value: ConfigValue): boolean {
  const isText = typeof value === 'string';
  if (schema === 'text') return isText;
  if (schema === 'argument') return isText || typeof value === 'number' || typeof value === 'boolean';
  return typeof value === schema;
}

function mismatch(expected: string, value: ConfigValue, path: string): Error {
  // A value can be a credential: only its kind is told.
  const kinds = { string: 'a text', number: 'a number', boolean: 'a boolean', object: 'a mapping' };
  const found = value === null ? 'null' : Array.isArray(value) ? 'a list' : kinds[typeof value as keyof typeof kinds];
  return new Error(`expected ${expected} in ${path || 'the configuration'} of kube-apiserver, found ${found}`);
}
