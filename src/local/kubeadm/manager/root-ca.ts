import type { ConfigMap, Namespace, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { Kube } from '../../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../../kube/resource.ts';
import { ROOT_CA } from '../../../kubeadm/names.ts';

export const TOKEN_SECRET = 'kubernetes.io/service-account-token';
const KEY = 'ca.crt';

export interface RootCaSight {
  readonly kube: Kube;
  readonly namespaces: readonly Namespace[];
  readonly configMaps: readonly ConfigMap[];
}

/** Gives every namespace the CA that kube-controller-manager read at its start. */
export async function publishRootCa({ kube, namespaces, configMaps }: RootCaSight, text: string): Promise<void> {
  const data = { [KEY]: text };
  for (const { metadata } of namespaces) {
    if (metadata?.deletionTimestamp !== undefined) continue;
    const key = { namespace: metadata?.name ?? '', name: ROOT_CA.name };
    const there = configMaps.find(({ metadata: own }) => own?.name === key.name && own.namespace === key.namespace);
    if (there === undefined) await kube.create(CONFIG_MAPS, { metadata: key, data });
    else if (there.data?.[KEY] !== text) await kube.update(CONFIG_MAPS, { ...there, data });
  }
}

/** And every Secret with a token of the old kind. */
export async function publishToTokens(kube: Kube, secrets: readonly Secret[], text: string): Promise<void> {
  const encoded = Buffer.from(text).toString('base64');
  for (const secret of secrets) {
    const { type, data = {} } = secret;
    if (type !== TOKEN_SECRET || data['token'] === undefined || data[KEY] === encoded) continue;
    await kube.update(SECRETS, { ...secret, data: { ...data, [KEY]: encoded } });
  }
}
