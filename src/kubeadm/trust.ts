import { minutes } from '../kube/duration.ts';
import type { Edge, Foreign, Holding, Side, Takes, TrustGraph } from '../trust/graph.ts';
import { configMap, type ObjectRef } from '../trust/object.ts';
import { KUBEADM_CHAINS, type SignerName, signerNamed } from './chains.ts';
import {
  AUTHENTICATION,
  CERTIFICATES_DIRECTORY,
  CLUSTER_INFO,
  ETCD_CLIENT_PORT,
  ETCD_PEER_PORT,
  KUBE_APISERVER_PORT,
  KUBELET_CLIENT_FILE,
  KUBELET_DIRECTORY,
  KUBERNETES_DIRECTORY,
  ROOT_CA,
} from './names.ts';

/** In which object of the API each CA is to be found; undefined: in none, its certificate is in files only. */
export type PublishedSigners = Readonly<Record<SignerName, ObjectRef | undefined>>;

/** With nothing installed: what kubeadm and the control plane publish by themselves. etcd's CA is in no object. */
export const PUBLISHED_SIGNERS: PublishedSigners = {
  ca: configMap(ROOT_CA.namespace, ROOT_CA.name),
  'front-proxy-ca': configMap(AUTHENTICATION.namespace, AUTHENTICATION.name),
  'etcd-ca': undefined,
};

/** Stands for a CA that is in no object: nobody can read it from the API. */
const IN_FILES_ONLY = configMap('', 'in files only');

const API = 'kube-apiserver';
const API_URL = `https://<control plane endpoint>:${KUBE_APISERVER_PORT}`;

/**
 * The trust graph of a control plane that kubeadm made (spec 80, 1 and 2). Leaves are in files of their nodes and in no object, so there
 * is nothing that is delivered, and no flow: every edge says itself what each side has, where, and how it takes a change.
 */
export function kubeadmTrust(published: PublishedSigners = PUBLISHED_SIGNERS): TrustGraph {
  const signedBy = (name: SignerName) => published[name] ?? IN_FILES_ONLY;
  const leaf = (name: string): Foreign => {
    const { target, signer, uses } = chainNamed(name);
    const file =
      target.kind === 'pair'
        ? `${CERTIFICATES_DIRECTORY}/${target.base}.crt`
        : `${KUBERNETES_DIRECTORY}/${target.file}`;
    return { issuerIn: signedBy(signer), file, takes: uses[0]?.takes ?? 'on-use', by: 'kubeadm' };
  };
  const trusts = (name: SignerName, process: string, setting: string): Holding => {
    const { base, uses } = signerNamed(name);
    const use = uses.find(candidate => candidate.process === process && candidate.setting === setting);
    if (use === undefined) throw new RangeError(`${process} has no ${setting} in the table of ${name}`);
    return held(name, `${CERTIFICATES_DIRECTORY}/${base}.crt`, use.takes);
  };
  const held = (name: SignerName, file: string, takes: Takes): Holding => ({
    object: signedBy(name),
    elsewhere: { file, takes, by: 'kubeadm' },
  });
  const apiServer: Edge['server'] = {
    process: API,
    nodes: 'control-plane',
    endpoint: { url: API_URL },
    presents: leaf('apiserver'),
    verifiesWith: trusts('ca', API, '--client-ca-file'),
  };
  const toApiServer = (name: string, client: Side): Edge => ({
    name: `${name} to kube-apiserver`,
    client,
    server: apiServer,
  });
  const withKubeconfig = (process: string, file: string): Edge =>
    toApiServer(process, {
      process,
      nodes: 'control-plane',
      presents: leaf(file),
      verifiesWith: held('ca', `${KUBERNETES_DIRECTORY}/${file}`, 'restart'),
    });
  const etcd = (port: number, certificate: string, setting: string): Edge['server'] => ({
    process: 'etcd',
    nodes: 'control-plane',
    endpoint: { url: `https://<node address>:${port}` },
    presents: leaf(certificate),
    verifiesWith: trusts('etcd-ca', 'etcd', setting),
  });
  return {
    deliveries: [],
    flows: [],
    edges: [
      toApiServer('administrators', {
        process: 'kubectl',
        nodes: 'anywhere',
        presents: leaf('admin.conf'),
        verifiesWith: held('ca', `${KUBERNETES_DIRECTORY}/admin.conf`, 'on-use'),
      }),
      toApiServer('joining nodes', {
        process: 'kubeadm join',
        nodes: 'anywhere',
        presents: 'token',
        verifiesWith: {
          object: configMap(CLUSTER_INFO.namespace, CLUSTER_INFO.name),
          elsewhere: { file: `${CLUSTER_INFO.namespace}/${CLUSTER_INFO.name}`, takes: 'on-use', by: 'kubeadm' },
        },
      }),
      toApiServer('pods', {
        process: 'pod',
        nodes: 'all',
        presents: 'token',
        verifiesWith: {
          object: signedBy('ca'),
          elsewhere: {
            file: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
            takes: 'watch',
            by: 'kube-controller-manager',
            rereads: {
              withinMs: minutes(2),
              source: 'a kubelet refreshes mounted ConfigMaps within about two minutes',
            },
          },
        },
      }),
      toApiServer('kubelets', {
        process: 'kubelet',
        nodes: 'all',
        presents: {
          issuerIn: signedBy('ca'),
          file: `${KUBELET_DIRECTORY}/${KUBELET_CLIENT_FILE}`,
          takes: 'watch',
          by: 'certificate signing requests',
        },
        verifiesWith: held('ca', `${KUBERNETES_DIRECTORY}/kubelet.conf`, 'restart'),
      }),
      withKubeconfig('kube-controller-manager', 'controller-manager.conf'),
      withKubeconfig('kube-scheduler', 'scheduler.conf'),
      {
        name: 'kube-apiserver to kubelets',
        // kubeadm sets no --kubelet-certificate-authority: nobody verifies what a kubelet shows.
        client: { process: API, nodes: 'control-plane', presents: leaf('apiserver-kubelet-client') },
        server: {
          process: 'kubelet',
          nodes: 'all',
          endpoint: { url: 'https://<node address>:10250' },
          presents: {
            issuerIn: IN_FILES_ONLY,
            file: `${KUBELET_DIRECTORY}/kubelet.crt`,
            takes: 'restart',
            by: 'the kubelet itself',
          },
          verifiesWith: trusts('ca', 'kubelet', 'authentication.x509.clientCAFile'),
        },
      },
      {
        name: 'kube-apiserver to etcd',
        client: {
          process: API,
          nodes: 'control-plane',
          presents: leaf('apiserver-etcd-client'),
          verifiesWith: trusts('etcd-ca', API, '--etcd-cafile'),
        },
        server: etcd(ETCD_CLIENT_PORT, 'etcd-server', '--trusted-ca-file'),
      },
      {
        name: 'members of etcd to each other',
        client: {
          process: 'etcd',
          nodes: 'control-plane',
          presents: leaf('etcd-peer'),
          verifiesWith: trusts('etcd-ca', 'etcd', '--peer-trusted-ca-file'),
        },
        server: etcd(ETCD_PEER_PORT, 'etcd-peer', '--peer-trusted-ca-file'),
      },
      {
        name: 'kube-apiserver to aggregated API servers',
        client: { process: API, nodes: 'control-plane', presents: leaf('front-proxy-client') },
        server: {
          process: 'aggregated API server',
          nodes: 'anywhere',
          endpoint: { url: 'https://<APIService endpoint>:443' },
          verifiesWith: {
            object: signedBy('front-proxy-ca'),
            elsewhere: {
              file: `${AUTHENTICATION.namespace}/${AUTHENTICATION.name}, requestheader-client-ca-file`,
              takes: 'watch',
              by: API,
            },
          },
        },
      },
    ],
  };
}

/** Whether the API has the object that a side's CA or issuer is in. */
export function isPublished({ name }: ObjectRef): boolean {
  return name !== IN_FILES_ONLY.name;
}

function chainNamed(name: string) {
  const chain = KUBEADM_CHAINS.find(candidate => candidate.name === name);
  if (chain === undefined) throw new RangeError(`there is no chain ${name}`);
  return chain;
}
