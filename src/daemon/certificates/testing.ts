import { dump } from 'js-yaml';
import type { Host } from '../../host/port.ts';
import { days } from '../../kube/duration.ts';
import type { ControllerConfig, ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import {
  CA_BUNDLE_KEY,
  CONTROLLER_CONFIG_NAME,
  KUBECONFIG_DATA,
  MCO_NAMESPACE,
} from '../../machine-config-api/names.ts';
import { issueSigner } from '../../pki/issue.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { Kubeconfig } from './kubeconfig.ts';
import { BOOTSTRAP_KUBECONFIG, KUBELET, LIVE_KUBECONFIG } from './paths.ts';

/** What the tests of this room share. */
export const NOW = new Date('2026-01-01T00:00:00Z');

const made = new Map<string, Promise<string>>();

/** A CA of that name in PEM, the same every time. */
export function ca(commonName: string): Promise<string> {
  const known = made.get(commonName);
  if (known !== undefined) return known;
  const keys = seededKeys(commonName);
  const signer = issueSigner({ keys, now: NOW, commonName, lifetimeMs: days(3650), algorithm: 'P-256' });
  const pem = signer.then(({ chain }) => encodeCertificates(chain));
  made.set(commonName, pem);
  return pem;
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** A kubeconfig that trusts `bundle`, with fields that nobody here knows. */
export function kubeconfigText(bundle: string, token = 'secret-token'): string {
  return dump({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'kubelet',
    clusters: [
      {
        name: 'local',
        cluster: { server: 'https://api-int:6443', 'certificate-authority-data': base64(bundle), x: 1 },
      },
    ],
    contexts: [{ name: 'kubelet', context: { cluster: 'local', user: 'kubelet' } }],
    users: [{ name: 'kubelet', user: { token, 'client-certificate': '/var/lib/kubelet/pki/current.pem' } }],
    extensions: [{ name: 'unknown', extension: { keep: 'me', number: '007', flag: true } }],
  });
}

/** Puts a running kubelet with both kubeconfigs onto a host. */
export async function installKubelet({ files, services }: Host, bundle: string): Promise<void> {
  await files.write(`/etc/systemd/system/${KUBELET}`, Buffer.from('[Service]\nExecStart=/usr/bin/kubelet\n'));
  for (const path of [BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG]) {
    await files.write(path, Buffer.from(kubeconfigText(bundle)), { mode: 0o600 });
  }
  await services.start(KUBELET);
}

/** The CAs a kubeconfig on the host trusts. */
export async function authoritiesOf({ files }: Host, path: string): Promise<string> {
  const bytes = (await files.read(path)) ?? Buffer.alloc(0);
  return new Kubeconfig(bytes, path).authorities.toString();
}

export function controllerConfig(
  spec: ControllerConfigSpec,
  annotations: Record<string, string> = {},
): ControllerConfig {
  return { metadata: { name: CONTROLLER_CONFIG_NAME, annotations }, spec };
}

export function kubeconfigData(bundle: string) {
  return {
    metadata: { namespace: MCO_NAMESPACE, name: KUBECONFIG_DATA },
    binaryData: { [CA_BUNDLE_KEY]: base64(bundle) },
  };
}
