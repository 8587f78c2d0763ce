import { silentLog } from '../../controller/log.ts';
import { systemClock } from '../../kube/clock.ts';
import { KubeError } from '../../kube/error.ts';
import { recordingEvents } from '../../kube/events.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { CONFIG_MAPS, type KubeObject, type ObjectKey, PODS, type Resource, SECRETS } from '../../kube/resource.ts';
import type { Files } from './files.ts';
import type { InstallerDeps } from './installer.ts';
import type { InstallerOptions } from './installer-options.ts';
import { freeLock } from './testing.ts';

export const NAMESPACE = 'openshift-kube-apiserver';

const base64 = (text: string) => Buffer.from(text).toString('base64');
export const manifestText = (revision: string, name = 'kube-apiserver') =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: NAMESPACE, name, labels: { revision } },
    spec: { containers: [{ name, args: ['--node=NODE_NAME', '--env=NODE_ENVVAR_NAME'] }] },
  });

export class CountingKube extends MemoryKube {
  readonly reads: string[] = [];
  failures: { path: string; code: number; times: number }[] = [];

  override async get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): Promise<T> {
    this.reads.push(`${resource.plural}/${key.name}`);
    const failure = this.failures.find(({ path, times }) => times > 0 && path === `${resource.plural}/${key.name}`);
    if (failure !== undefined) {
      failure.times--;
      throw new KubeError(failure.code, 'InternalError', `the server answered ${failure.code}`);
    }
    return super.get(resource, key);
  }

  async secret(name: string, data: Record<string, string>): Promise<void> {
    const encoded = Object.fromEntries(Object.entries(data).map(([key, text]) => [key, base64(text)]));
    await this.create(SECRETS, { metadata: { namespace: NAMESPACE, name }, data: encoded });
  }

  async configMap(name: string, data: Record<string, string>): Promise<void> {
    await this.create(CONFIG_MAPS, { metadata: { namespace: NAMESPACE, name }, data });
  }
}

export function options(overrides: Partial<InstallerOptions> = {}): InstallerOptions {
  return {
    revision: '7',
    nodeName: 'master-0.example',
    namespace: NAMESPACE,
    pod: 'kube-apiserver-pod',
    resourceDir: '/etc/kubernetes/static-pod-resources',
    podManifestDir: '/etc/kubernetes/manifests',
    configMaps: ['kube-apiserver-pod', 'config'],
    optionalConfigMaps: ['cloud-config'],
    secrets: ['etcd-client'],
    optionalSecrets: ['encryption-config'],
    certDir: '/etc/kubernetes/static-pod-resources/kube-apiserver-certs',
    certConfigMaps: ['client-ca'],
    optionalCertConfigMaps: [],
    certSecrets: ['serving'],
    optionalCertSecrets: ['user-serving-cert-000'],
    timeoutMs: 120_000,
    settlePauseMs: 30_000,
    ...overrides,
  };
}

export async function cluster(revisions: readonly string[] = ['7']): Promise<CountingKube> {
  const kube = new CountingKube();
  for (const revision of revisions) {
    await kube.configMap(`kube-apiserver-pod-${revision}`, { 'pod.yaml': manifestText('REVISION'), version: 'x' });
    await kube.configMap(`config-${revision}`, { 'config.yaml': 'node: NODE_NAME', 'setup.sh': 'echo REVISION' });
    await kube.secret(`etcd-client-${revision}`, {
      'tls.crt': `certificate ${revision}`,
      'tls.key': `key ${revision}`,
    });
  }
  await kube.configMap('client-ca', { 'ca-bundle.crt': 'REVISION bundle' });
  await kube.secret('serving', { 'tls.crt': 'serving certificate', 'tls.key': 'serving key' });
  return kube;
}

export function deps(kube: CountingKube, files: Files, overrides: Partial<InstallerDeps> = {}): InstallerDeps {
  return { kube, files, clock: systemClock, log: silentLog, events: recordingEvents(), lock: freeLock, ...overrides };
}

/** An installer pod on a node, at work or not any more. */
export async function installerPod(
  kube: MemoryKube,
  name: string,
  isEnded: boolean,
  nodeName = 'master-0.example',
): Promise<void> {
  await kube.create(PODS, {
    metadata: { namespace: NAMESPACE, name, labels: { app: 'installer' } },
    spec: { nodeName, containers: [] },
    status: {
      containerStatuses: [
        { name: 'installer', state: isEnded ? { terminated: { exitCode: 0 } } : { running: {} } },
      ] as never,
    },
  });
}
