import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { createIfMissing } from '../../kube/create-if-missing.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NAMESPACES } from '../../kube/resource.ts';
import { CONFIG_NAMESPACE, MANAGED_NAMESPACE } from '../../kube-apiserver/namespaces.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { type FoundingKeys, publicTokenKey } from './founding-keys.ts';

/** Tells the operators whom the founders trust, before the first revision is made of it. What is there stays. */
export async function provideFoundingObjects(kube: Kube, keys: FoundingKeys): Promise<void> {
  for (const name of [CONFIG_NAMESPACE, MANAGED_NAMESPACE])
    await createIfMissing(kube, NAMESPACES, { metadata: { name } });
  await createIfMissing(kube, CONFIG_MAPS, {
    metadata: { namespace: CONFIG_NAMESPACE, name: 'admin-kubeconfig-client-ca' },
    data: { [BUNDLE_KEY]: encodeCertificates(keys.admin.chain) },
  });
  await createIfMissing(kube, CONFIG_MAPS, {
    metadata: { namespace: MANAGED_NAMESPACE, name: 'sa-token-signing-certs' },
    data: { 'service-account-001.pub': publicTokenKey(keys) },
  });
}
