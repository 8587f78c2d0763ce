import type { ConfigMap, Node, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import type { RotationUnit } from '../../certrotation/config.ts';
import { dataText, loadSecret, TLS_CERT } from '../../certrotation/secret.ts';
import type { EvidenceSources } from '../../hand-over/evidence.ts';
import { nextKey } from '../../hand-over/family.ts';
import { ROOT_CA } from '../../hand-over/root-ca.ts';
import type { Clock } from '../../kube/clock.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, type ObjectKey, PODS } from '../../kube/resource.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { runningRevisions, type StoredNodeStatus } from '../../staticpod/node-status.ts';
import { CONTROL_PLANE_LABELS } from '../../staticpod/nodes.ts';
import { copyName } from '../../staticpod/revision/number.ts';
import type { TrustGraph } from '../../trust/graph.ts';
import { secret } from '../../trust/object.ts';
import { KUBE_APISERVER } from '../operand-objects.ts';
import { API_PORT } from '../target-config/pod.ts';

export interface KubeApiserverEvidence {
  readonly kube: Pick<Kube, 'list'>;
  readonly clock: Clock;
  readonly units: readonly RotationUnit[];
  graph(): TrustGraph;
  nodes(): readonly Node[];
  nodeStatuses(): readonly StoredNodeStatus[];
  configMap(key: ObjectKey): ConfigMap | undefined;
  secret(key: ObjectKey): Secret | undefined;
}

export const KUBELET_PORT = 10_250;
/** Where managers of a control plane run that is not OpenShift's; OpenShift's have operators of their own. */
const MANAGERS_NAMESPACE = 'kube-system';

/** Where the operator of kube-apiserver finds evidence of what verifiers have loaded. */
export function kubeApiserverEvidence(options: KubeApiserverEvidence): EvidenceSources {
  const { kube, units, graph, nodes } = options;
  return {
    graph,
    nodes,
    leavesOf: ({ namespace, name }) =>
      units
        .filter(({ signer }) => signer.namespace === namespace && signer.name === name)
        .map(({ target }) => secret(target.namespace, target.name)),
    isIn: ({ metadata }, set) =>
      set === 'all' || Object.keys(CONTROL_PLANE_LABELS).every(label => label in (metadata?.labels ?? {})),
    whereIs: ({ server }, { status }) => {
      const host = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
      if (host === undefined) return undefined;
      // 0 where nobody has said.
      const kubeletPort = status?.daemonEndpoints?.kubeletEndpoint?.Port || KUBELET_PORT;
      return { host, port: server.process === KUBE_APISERVER ? API_PORT : kubeletPort };
    },
    certificateIn: ({ namespace, name }) => {
      const found = options.secret({ namespace, name });
      return found && certificatesIn(dataText(found, TLS_CERT))[0];
    },
    namesake: ca => namesakeOf(ca, options),
    revisions: () => runningRevisions(options.nodeStatuses()),
    now: () => options.clock.now(),
    bundle: ({ namespace, name }) => options.configMap({ namespace, name }),
    copyOf: async ({ namespace, name }, revision) => options.configMap({ namespace, name: copyName(name, revision) }),
    rootCas: async () => {
      const { items } = await listAll(kube, CONFIG_MAPS, { fieldSelector: `metadata.name=${ROOT_CA}` });
      return items.filter(({ metadata }) => metadata?.name === ROOT_CA);
    },
    pods: async () => (await listAll(kube, PODS)).items,
    podsOf: async process => {
      const { items } = await kube.list(PODS, { namespace: MANAGERS_NAMESPACE });
      return items.filter(({ metadata }) => metadata?.name?.startsWith(`${process}-`));
    },
  };
}

/** Signers of ours and of OpenShift's end in the second in which they were made. */
const NAME_OF_ITS_OWN = /@\d+$/;

/** The name of an administrator's own CA may be that of the one before it. */
function namesakeOf(ca: Certificate, { units, configMap, secret: secretOf }: KubeApiserverEvidence) {
  const held = units.flatMap(({ bundle }) => certificatesIn(configMap(bundle)?.data?.[BUNDLE_KEY]));
  const isShared = held.some(({ der, subject }) => subject.der.equals(ca.subject.der) && !der.equals(ca.der));
  if (!isShared && NAME_OF_ITS_OWN.test(ca.subject.commonName)) return undefined;
  for (const key of units.flatMap(({ signer }) => [signer, nextKey(signer)])) {
    const pair = pairIn(secretOf(key));
    if (pair?.chain[0]?.der.equals(ca.der)) return pair;
  }
  return 'no key';
}

function pairIn(found: Secret | undefined): CertificateAndKey | undefined {
  try {
    return found && loadSecret(found);
  } catch {
    return undefined;
  }
}
