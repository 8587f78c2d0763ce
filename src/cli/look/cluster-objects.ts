import type { ConfigMap, Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1.d.ts';
import { KubeError } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import {
  CONFIG_MAPS,
  type KubeObject,
  NODES,
  type ObjectKey,
  PODS,
  type Resource,
  resource,
} from '../../kube/resource.ts';
import { CLUSTER_RECORD } from '../../kubeadm/cluster-record.ts';
import { AUTHENTICATION, KUBEADM_CONFIG, ROOT_CA, STATIC_POD_NAMESPACE } from '../../kubeadm/names.ts';
import type { Cluster } from '../cluster.ts';
import { readClusterInfo } from './cluster-info.ts';

/** What is read of a cluster that kubeadm made; absent: it is not there, or not for us, which `unseen` says. */
export interface ClusterObjects {
  readonly configuration: ConfigMap | undefined;
  readonly clusterInfo: ConfigMap | undefined;
  readonly rootCas: readonly ConfigMap[];
  readonly authentication: ConfigMap | undefined;
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
  readonly endpoints: EndpointSlice | undefined;
  readonly bundles: readonly CaBundle[];
  /** What adoption and the operator wrote down; absent: nobody has adopted the cluster. */
  readonly record?: ConfigMap | undefined;
  readonly unseen: readonly string[];
}

/** A `caBundle` field: what kube-apiserver checks a webhook or an aggregated API server with. */
export interface CaBundle {
  /** `validatingwebhookconfiguration/<name>` and the like. */
  readonly place: string;
  readonly pem: string;
}

const ENDPOINT_SLICES = resource<EndpointSlice>('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices');
/** Where every kube-apiserver says that it is there. */
const API_ENDPOINTS: ObjectKey = { namespace: 'default', name: 'kubernetes' };

const REGISTRATION = 'admissionregistration.k8s.io/v1';
type WithBundles = KubeObject & {
  webhooks?: { clientConfig?: BundleHolder }[];
  spec?: BundleHolder & { conversion?: { webhook?: { clientConfig?: BundleHolder } } };
};
interface BundleHolder {
  readonly caBundle?: string;
}
const BUNDLE_HOLDERS: readonly Resource<WithBundles>[] = [
  resource(REGISTRATION, 'ValidatingWebhookConfiguration', 'validatingwebhookconfigurations', false),
  resource(REGISTRATION, 'MutatingWebhookConfiguration', 'mutatingwebhookconfigurations', false),
  resource('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'customresourcedefinitions', false),
  resource('apiregistration.k8s.io/v1', 'APIService', 'apiservices', false),
];

/** Reads it, everything at the same time; what we may not read is said and ends nothing. */
export async function readClusterObjects(cluster: Cluster): Promise<ClusterObjects> {
  const { kube } = cluster;
  const unseen: string[] = [];
  const attempt = async <T>(what: string, reading: Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await reading;
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      // A kind that this version does not know is no loss.
      if (error.code !== 404) unseen.push(`${what}: ${error.message}`);
      return otherwise;
    }
  };
  const configMap = (key: ObjectKey) =>
    attempt(`configmap/${key.name} in ${key.namespace}`, getIfPresent(kube, CONFIG_MAPS, key), undefined);
  const items = <T extends KubeObject>(kind: Resource<T>, selection: object = {}): Promise<readonly T[]> =>
    attempt(
      kind.plural,
      listAll(kube, kind, selection).then(list => list.items),
      [],
    );
  const [record, configuration, clusterInfo, rootCas, authentication, nodes, pods, endpoints, ...holders] =
    await Promise.all([
      configMap(CLUSTER_RECORD),
      configMap(KUBEADM_CONFIG),
      readClusterInfo(cluster),
      // Who may not list all of them may still read the first.
      items(CONFIG_MAPS, { fieldSelector: `metadata.name=${ROOT_CA.name}` }).then(async found => {
        const own = found.length > 0 ? undefined : await configMap(ROOT_CA);
        return own === undefined ? found : [own];
      }),
      configMap(AUTHENTICATION),
      items(NODES),
      items(PODS, { namespace: STATIC_POD_NAMESPACE, labelSelector: 'tier=control-plane' }),
      attempt('endpointslice/kubernetes in default', getIfPresent(kube, ENDPOINT_SLICES, API_ENDPOINTS), undefined),
      ...BUNDLE_HOLDERS.map(async kind => bundlesOf(kind, await items(kind))),
    ]);
  return {
    configuration,
    clusterInfo,
    rootCas,
    authentication,
    nodes,
    pods,
    endpoints,
    bundles: holders.flat(),
    record,
    unseen,
  };
}

function bundlesOf({ kind }: Resource, objects: readonly WithBundles[]): CaBundle[] {
  return objects.flatMap(({ metadata, webhooks = [], spec }) =>
    [...webhooks.map(({ clientConfig }) => clientConfig), spec, spec?.conversion?.webhook?.clientConfig].flatMap(
      holder =>
        typeof holder?.caBundle === 'string' && holder.caBundle !== ''
          ? [
              {
                place: `${kind.toLowerCase()}/${metadata?.name}`,
                pem: Buffer.from(holder.caBundle, 'base64').toString('utf8'),
              },
            ]
          : [],
    ),
  );
}
