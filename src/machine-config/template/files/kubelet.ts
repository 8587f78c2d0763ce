import type { IgnitionUnit } from '../../../machine-config-api/ignition/types.ts';
import { MASTER_POOL } from '../../../machine-config-api/names.ts';
import { INTERMEDIATE_PROFILE } from '../../kubelet-config/tls-profile.ts';
import type { FileEntry, Template } from '../entry.ts';
import { type TemplateValues, withoutNewlines } from '../values.ts';

export const KUBELET_CONF_PATH = '/etc/kubernetes/kubelet.conf';

export const KUBELET_CONFIGURATION_KIND = {
  kind: 'KubeletConfiguration',
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
};

/** The kubelet's configuration before anybody changes it. It names the file of its client CA and does not hold it. */
export function kubeletConfiguration({ clusterDnsIp }: TemplateValues): Record<string, unknown> {
  return {
    ...KUBELET_CONFIGURATION_KIND,
    authentication: { x509: { clientCAFile: '/etc/kubernetes/kubelet-ca.crt' }, anonymous: { enabled: false } },
    cgroupDriver: 'systemd',
    cgroupRoot: '/',
    clusterDNS: [clusterDnsIp],
    clusterDomain: 'cluster.local',
    containerLogMaxSize: '50Mi',
    maxPods: 250,
    kubeAPIQPS: 50,
    kubeAPIBurst: 100,
    podPidsLimit: 4096,
    protectKernelDefaults: true,
    rotateCertificates: true,
    serializeImagePulls: false,
    staticPodPath: '/etc/kubernetes/manifests',
    systemCgroups: '/system.slice',
    nodeStatusUpdateFrequency: '10s',
    nodeStatusReportFrequency: '5m',
    serverTLSBootstrap: true,
    tlsMinVersion: INTERMEDIATE_PROFILE.minTlsVersion,
    tlsCipherSuites: INTERMEDIATE_PROFILE.cipherSuites,
  };
}

/** The text of a kubelet's configuration file; JSON, which the kubelet reads as YAML, with what Go escapes in it. */
export function kubeletConfText(configuration: object): string {
  const text = JSON.stringify(configuration, null, 2);
  const escaped = text.replace(/[<>&\u2028\u2029]/g, each => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return `${escaped}\n`;
}

export const kubeletConf: Template<FileEntry> = values => ({
  path: KUBELET_CONF_PATH,
  mode: 0o644,
  contents: kubeletConfText(kubeletConfiguration(values)),
});

export const cloudConf: Template<FileEntry> = ({ cloudProviderConfig }) => ({
  path: '/etc/kubernetes/cloud.conf',
  mode: 0o644,
  contents: withoutNewlines(cloudProviderConfig),
});

export const NODE_SIZING_PATH = '/etc/node-sizing-enabled.env';

export interface Reserved {
  readonly isAutomatic?: boolean;
  readonly memory?: string | undefined;
  readonly cpu?: string | undefined;
  readonly ephemeralStorage?: string | undefined;
}

/** What of a machine is kept for the system. */
export function nodeSizingText({ isAutomatic = false, memory, cpu, ephemeralStorage }: Reserved): string {
  return [
    `NODE_SIZING_ENABLED=${isAutomatic}`,
    `SYSTEM_RESERVED_MEMORY=${memory || '1Gi'}`,
    `SYSTEM_RESERVED_CPU=${cpu || '500m'}`,
    `SYSTEM_RESERVED_ES=${ephemeralStorage || '1Gi'}`,
    '',
  ].join('\n');
}

export const nodeSizing: Template<FileEntry> = () => ({
  path: NODE_SIZING_PATH,
  mode: 0o644,
  contents: nodeSizingText({}),
});

export const KUBELET_LOG_LEVEL_PATH = '/etc/systemd/system/kubelet.service.d/20-logging.conf';

export function kubeletLogLevelText(level: number): string {
  return `[Service]\nEnvironment="KUBELET_LOG_LEVEL=${level}"\n`;
}

export const kubeletLogLevel: Template<FileEntry> = () => ({
  path: KUBELET_LOG_LEVEL_PATH,
  mode: 0o644,
  contents: kubeletLogLevelText(2),
});

/** The kubelet of a role. */
export function kubeletService(role: string): Template<IgnitionUnit> {
  const isMaster = role === MASTER_POOL;
  const labels = isMaster
    ? 'node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master'
    : 'node-role.kubernetes.io/worker';
  return values => {
    const { cloudProvider, images, isIpv6Only, isDualStack } = values;
    const flags = [
      '--config=/etc/kubernetes/kubelet.conf',
      '--bootstrap-kubeconfig=/etc/kubernetes/kubeconfig',
      '--kubeconfig=/var/lib/kubelet/kubeconfig',
      '--container-runtime-endpoint=/var/run/crio/crio.sock',
      '--runtime-cgroups=/system.slice/crio.service',
      `--node-labels=${labels},node.openshift.io/os_id=\${ID}`,
      `--node-ip=\${${isDualStack ? 'KUBELET_NODE_IPS' : 'KUBELET_NODE_IP'}}`,
      '--minimum-container-ttl-duration=6m0s',
      '--volume-plugin-dir=/etc/kubernetes/kubelet-plugins/volume/exec',
      `--cloud-provider=${cloudProvider}`,
      ...credentialProviderFlags(values),
      '--hostname-override=${KUBELET_NODE_NAME}',
      '--provider-id=${KUBELET_PROVIDERID}',
      ...(isMaster ? ['--register-with-taints=node-role.kubernetes.io/master=:NoSchedule'] : []),
      ...(images['infraImageKey'] ? [`--pod-infra-container-image=${images['infraImageKey']}`] : []),
      '--system-reserved=cpu=${SYSTEM_RESERVED_CPU},memory=${SYSTEM_RESERVED_MEMORY},ephemeral-storage=${SYSTEM_RESERVED_ES}',
      '--v=${KUBELET_LOG_LEVEL}',
    ];
    return {
      name: 'kubelet.service',
      enabled: true,
      contents: [
        '[Unit]',
        'Description=Kubernetes Kubelet',
        'Requires=crio.service',
        'After=crio.service network-online.target',
        '',
        '[Service]',
        'Type=notify',
        'ExecStartPre=/bin/mkdir --parents /etc/kubernetes/manifests',
        `Environment="KUBELET_NODE_IP=${isIpv6Only ? '::' : '0.0.0.0'}"`,
        'EnvironmentFile=/etc/os-release',
        'EnvironmentFile=-/etc/kubernetes/kubelet-env',
        `EnvironmentFile=${NODE_SIZING_PATH}`,
        `ExecStart=/usr/bin/kubelet \\\n  ${flags.join(' \\\n  ')}`,
        'Restart=always',
        'RestartSec=10',
        '',
        '[Install]',
        'WantedBy=multi-user.target',
        '',
      ].join('\n'),
    };
  };
}

const CREDENTIAL_PROVIDERS: Readonly<Record<string, string>> = { AWS: 'ecr', GCP: 'gcr', Azure: 'acr' };

function credentialProviderFlags({ platform }: TemplateValues): string[] {
  const registry = Object.hasOwn(CREDENTIAL_PROVIDERS, platform) ? CREDENTIAL_PROVIDERS[platform] : undefined;
  if (registry === undefined) return [];
  return [
    '--image-credential-provider-bin-dir=/usr/libexec/kubelet-image-credential-provider-plugins',
    `--image-credential-provider-config=/etc/kubernetes/credential-providers/${registry}-credential-provider.yaml`,
  ];
}
