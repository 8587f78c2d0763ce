import { dump } from 'js-yaml';
import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { TLS_CERT, TLS_KEY } from '../../certrotation/secret.ts';
import { Informer } from '../../kube/informer.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { MANAGED_NAMESPACE } from '../../kube-apiserver/namespaces.ts';
import { SERVER_CA_DIGEST } from '../../machine-config-api/names.ts';
import { serverCaDigest } from '../../machine-config-api/server-ca-digest.ts';
import { readCertificates } from '../../pki/pem.ts';
import { ensureFile } from '../../staticpod/node/atomic-write.ts';
import { type Files, systemFiles } from '../../staticpod/node/files.ts';
import { caDigest, encodeReceipts, NODE_RECEIPTS } from '../../trust/receipts.ts';
import { CSR_SIGNER, INTERNAL_NAME } from '../cluster-inputs.ts';
import { type LocalNode, MANIFESTS } from '../node.ts';
import type { ClusterPart, PartContext } from '../part.ts';

/** A program that is a client of the API with a certificate of its own chain. */
interface Manager {
  readonly name: string;
  readonly secret: string;
  readonly flags: readonly string[];
}

function managersWith(tokensFile: string): readonly Manager[] {
  return [
    {
      name: 'kube-controller-manager',
      secret: 'kube-controller-manager-client-cert-key',
      flags: [
        '--use-service-account-credentials=true',
        `--root-ca-file=${mounted('kube-controller-manager', 'ca.crt')}`,
        `--service-account-private-key-file=${tokensFile}`,
        `--cluster-signing-cert-file=${mounted('kube-controller-manager', SIGNER_FILE)}`,
        `--cluster-signing-key-file=${mounted('kube-controller-manager', SIGNER_FILE)}`,
      ],
    },
    { name: 'kube-scheduler', secret: 'kube-scheduler-client-cert-key', flags: [] },
  ];
}
const SIGNER_FILE = 'csr-signer.pem';
const SERVER_CA = 'kube-apiserver-server-ca';
const NAMESPACE = 'kube-system';

/**
 * kube-controller-manager and kube-scheduler as static pods of the first control-plane node. They read a new client certificate by
 * themselves; a new CA is a new manifest, because they read that once.
 */
export function managersPart(tokensFile: string): ClusterPart {
  const managers = managersWith(tokensFile);
  return {
    name: 'kube-controller-manager',
    async start(context) {
      const [node] = context.controlPlane;
      if (node === undefined) throw new Error('expected a control-plane node');
      const files = systemFiles(node.root);
      const selection = { namespace: MANAGED_NAMESPACE };
      const secrets = new Informer<Secret>(context.kube, SECRETS, { selection });
      const bundles = new Informer<ConfigMap>(context.kube, CONFIG_MAPS, { selection });
      const written = new Set<string>();
      const signer = pairOf(await context.patiently(() => context.kube.get(SECRETS, CSR_SIGNER)));
      let work = Promise.resolve();
      const look = () => {
        work = work
          .then(() => provide(managers, { secrets, bundles, files, signer, apiUrl: context.url }, written))
          .then(context.changed)
          .catch((err: unknown) => context.log.warn({ err }, 'files of kube-controller-manager could not be written'));
      };
      for (const informer of [secrets, bundles]) {
        informer.subscribe({ add: look, update: look, delete: () => {} });
        informer.start();
      }
      return {
        ended: stopped(context, async () => {
          await Promise.all([secrets.stop(), bundles.stop()]);
          await work;
        }),
        state: () => stateOf(node, managers, written),
      };
    },
  };
}

interface Sources {
  readonly secrets: Informer<Secret>;
  readonly bundles: Informer<ConfigMap>;
  readonly files: Files;
  /** Of what kubelets ask for with certificate signing requests. */
  readonly signer: Buffer | undefined;
  readonly apiUrl: string;
}

async function provide(managers: readonly Manager[], sources: Sources, written: Set<string>): Promise<void> {
  const { secrets, bundles, files, signer, apiUrl } = sources;
  const ca = bundles.get({ namespace: MANAGED_NAMESPACE, name: SERVER_CA })?.data?.[BUNDLE_KEY];
  for (const manager of managers) {
    const { name, secret } = manager;
    const client = pairOf(secrets.get({ namespace: MANAGED_NAMESPACE, name: secret }));
    if (!ca || client === undefined || signer === undefined) continue;
    const content = {
      'ca.crt': Buffer.from(ca),
      'client.pem': client,
      kubeconfig: Buffer.from(kubeconfig(apiUrl)),
      [SIGNER_FILE]: signer,
    };
    await files.makeDirectory(directoryOf(name));
    for (const [file, bytes] of Object.entries(content)) {
      await ensureFile(files, `${directoryOf(name)}/${file}`, bytes, 0o600);
    }
    // After the files: whatever starts with this manifest finds the bundle that it names, or one that came later.
    await files.makeDirectory(`/${MANIFESTS}`);
    const manifest = Buffer.from(JSON.stringify(pod(manager, ca)));
    await ensureFile(files, `/${MANIFESTS}/${name}-pod.yaml`, manifest, 0o600);
    written.add(name);
  }
}

/** One file, so that certificate and key are never of two generations. */
function pairOf(secret: Secret | undefined): Buffer | undefined {
  const [certificate, key] = [secret?.data?.[TLS_CERT], secret?.data?.[TLS_KEY]];
  if (!certificate || !key) return undefined;
  return Buffer.concat([certificate, key].map(text => Buffer.from(text, 'base64')));
}

function stateOf(
  node: LocalNode,
  managers: readonly Manager[],
  written: ReadonlySet<string>,
): { ready: boolean; text: string } {
  const running = managers.filter(({ name }) => node.runner(NAMESPACE, `${name}-${node.name}`) !== undefined);
  const ready = running.length === managers.length;
  const waiting = written.size < managers.length ? 'waiting for their client certificates' : 'starting';
  return { ready, text: ready ? `with kube-scheduler on ${node.name}` : waiting };
}

/** Paths are relative to the kubeconfig: the programs read it as it is. */
function kubeconfig(server: string): string {
  return dump({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'cluster', cluster: { server, 'tls-server-name': INTERNAL_NAME, 'certificate-authority': 'ca.crt' } },
    ],
    users: [{ name: 'user', user: { 'client-certificate': 'client.pem', 'client-key': 'client.pem' } }],
    contexts: [{ name: 'context', context: { cluster: 'cluster', user: 'user' } }],
    'current-context': 'context',
  });
}

/** Who hands a signer over counts them by this (spec 90, section 3); a bundle that cannot be read is no evidence of anything. */
function receiptOf(name: string, ca: string): Record<string, string> {
  try {
    const cas = readCertificates(ca).certificates.map(caDigest);
    const receipt = { process: name, file: mounted(name, 'ca.crt'), kind: 'started', cas } as const;
    return { [NODE_RECEIPTS]: encodeReceipts([receipt]) };
  } catch {
    return {};
  }
}

function pod({ name, flags }: Manager, ca: string): Pod {
  const access = `--kubeconfig=${mounted(name, 'kubeconfig')}`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace: NAMESPACE,
      name,
      // Another CA is another manifest, so the mirror pod says with which bundle the running process began.
      annotations: { [SERVER_CA_DIGEST]: serverCaDigest(Buffer.from(ca)), ...receiptOf(name, ca) },
    },
    spec: {
      hostNetwork: true,
      priorityClassName: 'system-node-critical',
      containers: [
        {
          name,
          image: name,
          command: [name],
          args: [access, '--leader-elect=true', '--bind-address=$(HOST_IP)', ...flags],
          env: [{ name: 'HOST_IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } }],
          volumeMounts: [{ name: 'certs', mountPath: directoryOf(name) }],
        },
      ],
      volumes: [{ name: 'certs', hostPath: { path: directoryOf(name) } }],
    },
  };
}

function directoryOf(name: string): string {
  return `/etc/kubernetes/static-pod-resources/${name}-certs`;
}

function mounted(name: string, file: string): string {
  return `${directoryOf(name)}/${file}`;
}

function stopped({ signal }: PartContext, end: () => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => void end().then(resolve, reject);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}
