import type { Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';

/** The account of the side containers: a token that does not expire keeps them able to work when all certificates have (spec 20, 5.3). */
export const RECOVERY_ACCOUNT = { namespace: OPERAND_NAMESPACE, name: 'localhost-recovery-client' };
export const RECOVERY_TOKEN = { namespace: OPERAND_NAMESPACE, name: 'localhost-recovery-client-token' };

export const ACCOUNT_NAME = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';

/** What the token Secret still lacks; undefined when the side containers can use it. */
export function recoveryTokenProblem(
  account: ServiceAccount | undefined,
  token: Secret | undefined,
): string | undefined {
  const where = `secret ${RECOVERY_TOKEN.namespace}/${RECOVERY_TOKEN.name}`;
  if (account === undefined)
    return `serviceaccount ${RECOVERY_ACCOUNT.namespace}/${RECOVERY_ACCOUNT.name} does not exist`;
  if (token === undefined) return `${where} does not exist`;
  const uid = token.metadata?.annotations?.[ACCOUNT_UID] ?? '';
  if (uid === '') return `${where} has no token yet: it does not name the account's uid`;
  if (uid !== account.metadata?.uid) return `${where} is for an account that is gone: it names another uid`;
  for (const key of ['token', 'ca.crt']) if (!token.data?.[key]) return `${where} has no ${key} yet`;
  return undefined;
}
