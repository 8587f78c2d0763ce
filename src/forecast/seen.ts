import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { annotationsOf } from '../certrotation/secret.ts';
import { isRevisionCopy } from '../inventory/certificates.ts';
import { FORCED } from '../inventory/forced.ts';
import { isNamed } from '../inventory/known-chains.ts';
import { certificatesIn } from '../inventory/relations.ts';
import { CONFIG_MAPS, type KubeObject, type Resource, SECRETS } from '../kube/resource.ts';
import {
  CONFIG_NAMESPACE,
  ETCD_NAMESPACE,
  MANAGED_NAMESPACE,
  WATCHED_NAMESPACES,
} from '../kube-apiserver/namespaces.ts';
import { INFRASTRUCTURES, NETWORKS } from '../kube-apiserver/resources.ts';
import { MCO_NAMESPACE } from '../machine-config-api/names.ts';
import { type ObjectRef, objectText } from '../trust/object.ts';
import { twinKeys } from '../twin/keys.ts';
import type { Seen } from '../twin/load.ts';
import { outOfDate } from './derived.ts';
import type { PlanObjects } from './objects.ts';
import { holdsCertificate, holdsCertificates, twinsOf } from './twin.ts';

/** Where the operators of a twin look. */
const NAMESPACES: readonly (string | undefined)[] = [
  ...WATCHED_NAMESPACES,
  ETCD_NAMESPACE,
  MCO_NAMESPACE,
  'kube-system',
];
/** Of these namespaces everything is somebody's input; elsewhere the operator makes what holds no certificate. */
const INPUTS: readonly (string | undefined)[] = [CONFIG_NAMESPACE, MANAGED_NAMESPACE, ETCD_NAMESPACE];

const CSR_CA = { namespace: MANAGED_NAMESPACE, name: 'csr-controller-ca' };

/** The objects of a cluster as a twin goes on with them: cheap keys, and without what the operator makes itself. */
export async function seenFrom(
  objects: PlanObjects,
  {
    now,
    seed,
    force = [],
  }: { readonly now: Date; readonly seed: string; readonly force?: readonly ObjectRef[] | undefined },
): Promise<Seen> {
  const isLookedAt = (object: KubeObject) => NAMESPACES.includes(object.metadata?.namespace) && !isRevisionCopy(object);
  const secrets = objects.secrets.filter(secret => isLookedAt(secret) && holdsCertificate(secret.data));
  const configMaps = objects.configMaps.filter(
    configMap =>
      isLookedAt(configMap) && (holdsCertificates(configMap) || INPUTS.includes(configMap.metadata?.namespace)),
  );
  const twins = await twinsOf(secrets, configMaps, twinKeys(seed));
  const forced = new Set(force.map(objectText));
  const signers = certificatesIn(bundleText(configMaps.find(candidate => isNamed(candidate, CSR_CA))));
  const newest = signers.toSorted((a, b) => b.notBefore.getTime() - a.notBefore.getTime())[0];
  return {
    nodes: objects.nodes,
    objects: [
      [SECRETS, twins.secrets.map(secret => (forced.has(nameOf(secret)) ? asForced(secret) : secret))],
      [CONFIG_MAPS, twins.configMaps],
      ...one(INFRASTRUCTURES, objects.infrastructure),
      ...one(NETWORKS, objects.network),
    ],
    outOfDate: await outOfDate(configMaps.filter(holdsCertificates), secrets, now),
    kubeletSigner: newest && twins.pairOf(newest),
  };
}

function asForced<T extends KubeObject>(secret: T): T {
  return {
    ...secret,
    metadata: { ...secret.metadata, annotations: { ...annotationsOf(secret), [NOT_AFTER]: FORCED } },
  };
}

function nameOf({ metadata }: KubeObject): string {
  return objectText({ kind: 'Secret', namespace: metadata?.namespace ?? '', name: metadata?.name ?? '' });
}

function bundleText(configMap: ConfigMap | undefined): string | undefined {
  return configMap?.data?.[BUNDLE_KEY];
}

function one<T extends KubeObject>(resource: Resource<T>, object: T | undefined): [Resource, readonly KubeObject[]][] {
  return object === undefined ? [] : [[resource, [object]]];
}
