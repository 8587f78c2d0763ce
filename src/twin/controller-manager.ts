import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { Controller } from '../controller/controller.ts';
import { objectKey, onChange } from '../controller/trigger.ts';
import { sleep } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { isNotFound } from '../kube/error.ts';
import { getIfPresent } from '../kube/get.ts';
import { Informer } from '../kube/informer.ts';
import { CONFIG_MAPS, type KubeObject, keyOf, NAMESPACES, PODS, type Resource, SECRETS } from '../kube/resource.ts';
import { MANAGED_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import type { Tools } from './component.ts';

const ROOT_CA = 'kube-root-ca.crt';
const ACCOUNT_TOKEN = 'kubernetes.io/service-account-token';
/** It is restarted with another root CA by its operator, which takes a while. */
const ROOT_CA_AFTER_MS = seconds(40);

/**
 * kube-controller-manager as a small model: `kube-root-ca.crt` in every namespace, tokens in the Secrets of accounts, and nothing stays
 * whose owner is gone.
 */
export async function runControllerManager({ kube, clock, events, log }: Tools, signal: AbortSignal): Promise<void> {
  const namespaces = new Informer(kube, NAMESPACES, { clock });
  const configMaps = new Informer(kube, CONFIG_MAPS, { clock });
  const secrets = new Informer(kube, SECRETS, { clock });
  const pods = new Informer(kube, PODS, { clock });
  const published = () =>
    configMaps.get({ namespace: MANAGED_NAMESPACE, name: 'kube-apiserver-server-ca' })?.data?.[BUNDLE_KEY];
  let rootCa: string | undefined;

  const rootCas = new Controller({
    name: 'RootCACertPublisher',
    clock,
    events,
    log,
    triggers: [
      onChange(configMaps, { when: ({ metadata }) => metadata?.name === 'kube-apiserver-server-ca' }),
      onChange(namespaces),
    ],
    async reconcile() {
      const wanted = published();
      if (wanted === undefined) return;
      if (rootCa !== undefined && rootCa !== wanted) await sleep(clock, ROOT_CA_AFTER_MS, signal);
      rootCa = wanted;
      for (const { metadata } of namespaces.list().toSorted(byName)) {
        const key = { namespace: metadata?.name ?? '', name: ROOT_CA };
        const known = configMaps.get(key);
        const wantedMap: ConfigMap = { ...known, metadata: { ...known?.metadata, ...key }, data: { 'ca.crt': wanted } };
        if (known === undefined) await kube.create(CONFIG_MAPS, wantedMap, { signal });
        else if (known.data?.['ca.crt'] !== wanted) await kube.update(CONFIG_MAPS, wantedMap, { signal });
      }
    },
  });
  const tokens = new Controller({
    name: 'TokenController',
    clock,
    events,
    log,
    triggers: [onChange(secrets, { when: ({ type }) => type === ACCOUNT_TOKEN, keys: objectKey })],
    async reconcile(key) {
      const [namespace = '', name = ''] = key.split('/');
      const secret = secrets.get({ namespace, name });
      if (secret === undefined || secret.data?.['token'] !== undefined) return;
      const account = await getIfPresent(
        kube,
        SERVICE_ACCOUNTS_OF_TOKENS,
        { namespace, name: secret.metadata?.annotations?.[ACCOUNT_NAME] ?? '' },
        { signal },
      );
      const ca = published();
      if (account === undefined || ca === undefined) return { retry: true };
      const base64 = (text: string) => Buffer.from(text).toString('base64');
      const annotations = { ...secret.metadata?.annotations, [ACCOUNT_UID]: account.metadata?.uid ?? '' };
      const filled: Secret = {
        ...secret,
        metadata: { ...secret.metadata, annotations },
        data: { token: base64('a token'), 'ca.crt': base64(ca), namespace: base64(namespace) },
      };
      await kube.update(SECRETS, filled, { signal });
      return undefined;
    },
  });
  const garbage = new Controller({
    name: 'GarbageCollector',
    clock,
    events,
    log,
    triggers: [onGone(configMaps)],
    async reconcile(uid) {
      const owned: readonly [Resource, readonly KubeObject[]][] = [
        [CONFIG_MAPS, configMaps.list()],
        [SECRETS, secrets.list()],
        [PODS, pods.list()],
      ];
      for (const [resource, objects] of owned) {
        for (const object of objects) {
          const owners = object.metadata?.ownerReferences ?? [];
          if (owners.length !== 1 || owners[0]?.uid !== uid) continue;
          await kube.delete(resource, keyOf(object), { signal }).catch((error: unknown) => {
            if (!isNotFound(error)) throw error;
          });
        }
      }
    },
  });
  const informers = [namespaces, configMaps, secrets, pods];
  for (const informer of informers) informer.start();
  try {
    await Promise.all([rootCas, tokens, garbage].map(controller => controller.run(signal)));
  } finally {
    await Promise.all(informers.map(informer => informer.stop()));
  }
}

const ACCOUNT_NAME = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';
const SERVICE_ACCOUNTS_OF_TOKENS: Resource = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  namespaced: true,
};

function byName(a: KubeObject, b: KubeObject): number {
  return (a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1;
}

/** Asks for the uid of whatever is deleted. */
function onGone(source: Informer<ConfigMap>): ReturnType<typeof onChange> {
  return {
    synced: source.synced,
    start: enqueue => source.subscribe({ delete: last => enqueue(last.metadata?.uid ?? '') }),
  };
}
