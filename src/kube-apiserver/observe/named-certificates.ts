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
    if (problem !== undefined) return unchanged(previous, problem.message, problem.event);
    const named = [
      ...NAMED_CERTIFICATES.map(secret => filesOf(secret)),
      ...entries.map((entry, index) => ({
        ...filesOf(userCertificateName(index)),
        ...(namesOf(entry).length === 0 ? {} : { names: namesOf(entry) }),
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

interface Problem {
  readonly message: string;
  /** What the user got wrong is an event too; what may still come is not. */
  readonly event?: string;
}

function problemOf(entries: readonly NamedServingCert[], hasSecret: (name: string) => boolean): Problem | undefined {
  const where = 'spec.servingCerts.namedCertificates';
  if (entries.length > MOST_USER_CERTIFICATES) {
    return { message: `${where} cannot have more than ${MOST_USER_CERTIFICATES} entries`, event: FAILED };
  }
  const owners = new Map<string, number>();
  for (const [index, entry] of entries.entries()) {
    const secret = entry?.servingCertificate?.name ?? '';
    if (secret === '') {
      return { message: `${where}[${index}].servingCertificate.name cannot be empty`, event: FAILED };
    }
    if (!hasSecret(secret)) return { message: `${where}[${index}]: secret ${CONFIG_NAMESPACE}/${secret} not found` };
    for (const name of namesOf(entry)) {
      const owner = owners.get(name);
      if (owner !== undefined) {
        return { message: `${where}: the name ${JSON.stringify(name)} is in entries ${owner} and ${index}` };
      }
      owners.set(name, index);
    }
  }
  return undefined;
}

function namesOf({ names }: NamedServingCert): readonly string[] {
  return names ?? [];
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
