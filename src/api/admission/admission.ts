import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import type { Pod, Service } from 'kubernetes-types/core/v1.d.ts';
import type { ClusterRole, ClusterRoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import type { Authorizer } from '../auth/authorize.ts';
import { checkBindingWrite, checkRoleWrite } from '../auth/escalation.ts';
import { checkNodeRestriction, type WriteRequest } from '../auth/node-restriction.ts';
import { RBAC_GROUP } from '../auth/rbac.ts';
import { checkApproval, checkRequestedSubject, checkSigning } from '../auth/signing-request.ts';
import type { Lister } from '../lister.ts';
import type { Admission, Call } from '../rest/core.ts';
import type { Store } from '../store/store.ts';
import { checkDefinitionOpen } from './definition.ts';
import { checkNamespaceOpen, checkNamespaceRemovable } from './namespace.ts';
import { admitPod } from './pod.ts';
import { admitService } from './service.ts';

/** What is looked at before anything is written: who may grant what, what nodes may touch, what a pod runs as. */
export function createAdmission(store: Store, lister: Lister, authorizer: Authorizer): Admission {
  return {
    create(call, object) {
      checkNamespaceOpen(store, call);
      checkDefinitionOpen(store, call);
      checkNodeRestriction(writeRequest('CREATE', call, object), lister);
      const { kind } = call;
      switch (kind.bucket) {
        case '/pods':
          return admitPod(store, call, object as Pod);
        case '/services':
          return admitService(store, object as Service);
        case 'certificates.k8s.io/certificatesigningrequests':
          checkRequestedSubject(object as unknown as CertificateSigningRequest);
          return object;
        default:
          checkGrant(call, object, undefined);
          return object;
      }
    },
    update(call, object, old) {
      checkNodeRestriction(writeRequest('UPDATE', call, object, old), lister);
      if (call.kind.bucket === '/services') return admitService(store, object as Service);
      if (call.kind.bucket === 'certificates.k8s.io/certificatesigningrequests') checkSigner(call, object, old);
      checkGrant(call, object, old);
      return object;
    },
    delete(call, old) {
      checkNamespaceRemovable(call);
      checkNodeRestriction(writeRequest('DELETE', call, undefined, old), lister);
    },
  };

  function checkGrant({ kind, user }: Call, object: KubeObject, old: KubeObject | undefined): void {
    const context = { lister, authorizer, user };
    if (kind.group !== RBAC_GROUP) return;
    if (kind.plural === 'roles' || kind.plural === 'clusterroles') {
      checkRoleWrite(context, object as ClusterRole, old as ClusterRole | undefined);
    } else {
      checkBindingWrite(context, object as ClusterRoleBinding, old as ClusterRoleBinding | undefined);
    }
  }

  function checkSigner({ user, subresource }: Call, object: KubeObject, old: KubeObject): void {
    const [request, before] = [object, old] as unknown as [CertificateSigningRequest, CertificateSigningRequest];
    if (subresource === 'approval') checkApproval(authorizer, user, before);
    else if (subresource === 'status') checkSigning(authorizer, user, request, before);
  }
}

/** How the restrictions of kubelets see a write. */
export function writeRequest(
  operation: WriteRequest['operation'],
  { user, kind, subresource, namespace, name }: Call,
  object: KubeObject | undefined,
  oldObject?: KubeObject,
): WriteRequest {
  return { user, operation, group: kind.group, resource: kind.plural, subresource, namespace, name, object, oldObject };
}
