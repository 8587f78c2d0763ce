import { at, type CopyRule, OBSERVED_COPIES } from '../copies.ts';
import { CONFIG_NAMESPACE, OPERAND_NAMESPACE } from '../namespaces.ts';
import { MOST_USER_CERTIFICATES, mountedFile, NAMED_CERTIFICATES, userCertificateName } from '../operand-objects.ts';
import type { Config, NamedServingCert } from '../resources.ts';
import { nested } from '../target-config/merge.ts';
import { type Observer, unchanged } from './observation.ts';

const PATH = ['servingInfo', 'namedCertificates'];
const FAILED = 'ObserveNamedCertificatesFailed';

/** The built-in certificates and, behind them, those of the user, each in a Secret of its own number (spec 20, 8.3). */
export const namedCertificates: Observer = {
  paths: [PATH],
  observe({ apiServer, userSecret }, previous) {
    if (apiServer === undefined) return { config: {}, copies: copiesOf([]) };
    const entries = apiServer.spec?.servingCerts?.namedCertificates ?? [];
    const problem = problemOf(entries, name => userSecret(name) !== undefined);
    if (problem !== undefined) return unchanged(previous, problem, FAILED);
    const named = [
      ...NAMED_CERTIFICATES.map(secret => filesOf(secret)),
      ...entries.map(({ names = [] }, index) => ({
        ...filesOf(userCertificateName(index)),
        ...(names.length === 0 ? {} : { names }),
      })),
    ];
    return { config: nested(PATH, named), copies: copiesOf(entries) };
  },
};

/** The bundle of the user joins those of the operator; it stands nowhere in the configuration (spec 20, 2.4). */
export const userClientCA: Observer = {
  paths: [],
  observe({ apiServer }) {
    const name = apiServer?.spec?.clientCA?.name ?? '';
    const source = name === '' ? undefined : at(CONFIG_NAMESPACE, name);
    return { config: {}, copies: [{ ...OBSERVED_COPIES.userClientCA, source }] };
  },
};

function problemOf(entries: readonly NamedServingCert[], hasSecret: (name: string) => boolean): string | undefined {
  const where = 'spec.servingCerts.namedCertificates';
  if (entries.length > MOST_USER_CERTIFICATES) {
    return `${where} cannot have more than ${MOST_USER_CERTIFICATES} entries`;
  }
  const owners = new Map<string, number>();
  for (const [index, { names = [], servingCertificate }] of entries.entries()) {
    const secret = servingCertificate?.name ?? '';
    if (secret === '') return `${where}[${index}].servingCertificate.name cannot be empty`;
    if (!hasSecret(secret)) return `${where}[${index}]: secret ${CONFIG_NAMESPACE}/${secret} not found`;
    for (const name of new Set(names)) {
      const owner = owners.get(name);
      if (owner !== undefined) return `${where}: the name ${JSON.stringify(name)} is in entries ${owner} and ${index}`;
      owners.set(name, index);
    }
  }
  return undefined;
}

/** One rule for each number; those without an entry have their Secret deleted. */
function copiesOf(entries: readonly NamedServingCert[]): CopyRule[] {
  return Array.from({ length: MOST_USER_CERTIFICATES }, (_, index) => {
    const source = entries[index]?.servingCertificate?.name;
    return {
      kind: 'secret',
      destination: at(OPERAND_NAMESPACE, userCertificateName(index)),
      source: source === undefined ? undefined : at(CONFIG_NAMESPACE, source),
    };
  });
}

function filesOf(secret: string): Config {
  return { certFile: mountedFile('Secret', secret, 'tls.crt'), keyFile: mountedFile('Secret', secret, 'tls.key') };
}
