import type { ConfigMap, Pod } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../src/certrotation/bundle.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, type KubeObject, PODS, type Resource } from '../../src/kube/resource.ts';
import { certificatesIn, encodeCertificates } from '../../src/pki/pem.ts';
import type { Broken } from '../../src/twin/cluster.ts';

/** The CA of a signer leaves a published bundle as soon as there is a newer one of that signer. */
export function dropsOldCaEarly(bundleName: string): Broken {
  return inTheWay(kube => ({
    update: (resource, object, options) => kube.update(resource, withNewest(resource, object, bundleName), options),
  }));
}

function withNewest<T extends KubeObject>(resource: Resource<T>, object: T, bundleName: string): T {
  if (resource !== (CONFIG_MAPS as Resource) || object.metadata?.name !== bundleName) return object;
  const { data } = object as KubeObject as ConfigMap;
  const bySigner = Map.groupBy(certificatesIn(data?.[BUNDLE_KEY]), ({ subject }) => subject.commonName.split('@')[0]);
  const newest = [...bySigner.values()].map(all => all.reduce((a, b) => (b.notBefore > a.notBefore ? b : a)));
  return { ...object, data: { ...data, [BUNDLE_KEY]: encodeCertificates(newest) } };
}

/** A kube-apiserver that has been started is taken to be ready: nobody waits for it before the next node begins. */
export const takesStartedForReady: Broken = inTheWay(kube => ({
  async get(resource, key, options) {
    const object = await kube.get(resource, key, options);
    return resource === (PODS as Resource) && /^kube-apiserver-master-\d+$/.test(key.name) ? asReady(object) : object;
  },
}));

function asReady<T extends KubeObject>(object: T): T {
  const { status } = object as KubeObject as Pod;
  const others = (status?.conditions ?? []).filter(({ type }) => type !== 'Ready');
  const conditions = [...others, { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }];
  return { ...object, status: { ...status, phase: 'Running', conditions } };
}

/** Other answers to the operator for some of its calls. */
function inTheWay(change: (kube: Kube) => Partial<Kube>): Broken {
  return {
    operatorTools: tools => {
      const { kube } = tools;
      const changed = change(kube);
      const answering = new Proxy(kube, {
        get: (target, verb: keyof Kube) =>
          changed[verb] ?? (target[verb] as (...call: unknown[]) => unknown).bind(target),
      });
      return { ...tools, kube: answering };
    },
  };
}
