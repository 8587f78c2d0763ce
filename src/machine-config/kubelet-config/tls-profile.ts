import type { TlsSecurityProfile } from '../../machine-config-api/machine-config.ts';

/** The least TLS version and the cipher suites a kubelet serves with, by their IANA names. */
export interface TlsSettings {
  readonly minTlsVersion: string;
  readonly cipherSuites: readonly string[];
}

const INTERMEDIATE = [
  'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
];
const OLD = [
  ...INTERMEDIATE,
  'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA',
  'TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA',
  'TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA',
  'TLS_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_RSA_WITH_AES_256_GCM_SHA384',
  'TLS_RSA_WITH_AES_128_CBC_SHA256',
  'TLS_RSA_WITH_AES_128_CBC_SHA',
  'TLS_RSA_WITH_AES_256_CBC_SHA',
  'TLS_RSA_WITH_3DES_EDE_CBC_SHA',
];

/** The profile that counts when none is chosen. */
export const INTERMEDIATE_PROFILE: TlsSettings = { minTlsVersion: 'VersionTLS12', cipherSuites: INTERMEDIATE };

const PROFILES: Readonly<Record<string, TlsSettings>> = {
  Old: { minTlsVersion: 'VersionTLS10', cipherSuites: OLD },
  Intermediate: INTERMEDIATE_PROFILE,
  // TLS 1.3 brings its suites along.
  Modern: { minTlsVersion: 'VersionTLS13', cipherSuites: [] },
};

/** OpenSSL's names of the suites that Go knows. */
const OPENSSL_NAMES: Readonly<Record<string, string>> = {
  'ECDHE-ECDSA-AES128-GCM-SHA256': 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256': 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384': 'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384': 'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305': 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
  'ECDHE-RSA-CHACHA20-POLY1305': 'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-SHA256': 'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256',
  'ECDHE-RSA-AES128-SHA256': 'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256',
  'ECDHE-ECDSA-AES128-SHA': 'TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA',
  'ECDHE-RSA-AES128-SHA': 'TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA',
  'ECDHE-ECDSA-AES256-SHA': 'TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA',
  'ECDHE-RSA-AES256-SHA': 'TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA',
  'AES128-GCM-SHA256': 'TLS_RSA_WITH_AES_128_GCM_SHA256',
  'AES256-GCM-SHA384': 'TLS_RSA_WITH_AES_256_GCM_SHA384',
  'AES128-SHA256': 'TLS_RSA_WITH_AES_128_CBC_SHA256',
  'AES128-SHA': 'TLS_RSA_WITH_AES_128_CBC_SHA',
  'AES256-SHA': 'TLS_RSA_WITH_AES_256_CBC_SHA',
  'DES-CBC3-SHA': 'TLS_RSA_WITH_3DES_EDE_CBC_SHA',
};

/** The settings of a profile; names of suites that Go does not know are left out. */
export function tlsSettings(profile: TlsSecurityProfile | undefined): TlsSettings {
  const type = profile?.type || 'Intermediate';
  if (type !== 'Custom') return PROFILES[type] ?? INTERMEDIATE_PROFILE;
  if (!profile?.custom) return INTERMEDIATE_PROFILE;
  const { ciphers = [], minTLSVersion = '' } = profile.custom;
  const cipherSuites = ciphers.flatMap(cipher =>
    Object.hasOwn(OPENSSL_NAMES, cipher) ? [OPENSSL_NAMES[cipher] as string] : [],
  );
  return { minTlsVersion: minTLSVersion, cipherSuites };
}
