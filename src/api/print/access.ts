import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import type { ClusterRoleBinding, RoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import { seconds } from '../../kube/duration.ts';
import { humanDuration } from './age.ts';
import { AGE, NAME, printerOf, text, wideText } from './column.ts';

export const bindingPrinter = printerOf<RoleBinding | ClusterRoleBinding>([
  NAME,
  text('Role', 'The role that is granted.', ({ roleRef }) => `${roleRef.kind}/${roleRef.name}`),
  AGE,
  wideText('Users', 'The users it is granted to.', binding => subjects(binding, 'User')),
  wideText('Groups', 'The groups it is granted to.', binding => subjects(binding, 'Group')),
  wideText('ServiceAccounts', 'The service accounts it is granted to.', binding => subjects(binding, 'ServiceAccount')),
]);

export const signingRequestPrinter = printerOf<CertificateSigningRequest>([
  NAME,
  AGE,
  text('SignerName', 'Who is to sign.', ({ spec }) => spec.signerName || '<none>'),
  text('Requestor', 'Who asks.', ({ spec }) => spec.username),
  text('RequestedDuration', 'How long the certificate is to last.', ({ spec }) => {
    return spec.expirationSeconds === undefined ? '<none>' : humanDuration(seconds(spec.expirationSeconds));
  }),
  text('Condition', 'How far the request has come.', requestCondition),
]);

function subjects(binding: RoleBinding | ClusterRoleBinding, kind: string): string {
  const chosen = (binding.subjects ?? []).filter(subject => subject.kind === kind);
  return chosen
    .map(({ namespace, name }) => (kind === 'ServiceAccount' ? `${namespace ?? ''}/${name}` : name))
    .join(', ');
}

function requestCondition({ status }: CertificateSigningRequest): string {
  const has = (type: string) => status?.conditions?.some(condition => condition.type === type) ?? false;
  const decision = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending';
  const failed = has('Failed') ? ',Failed' : '';
  return `${decision}${failed}${status?.certificate ? ',Issued' : ''}`;
}
