import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../src/certrotation/bundle.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, type KubeObject, type Resource } from '../../src/kube/resource.ts';
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
