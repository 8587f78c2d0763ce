import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { LOCK_DIRECTORY, MANIFEST_DIRECTORY, RESOURCE_DIRECTORY } from '../../staticpod/config.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';
import { mountedFile, REVISION_DIRECTORY_PREFIX } from '../operand-objects.ts';
import { AUDIT_DIRECTORY } from './default-config.ts';

export const STARTUP_MONITOR_KEY = 'kube-apiserver-startup-monitor-pod.yaml';

const FALLBACK_TIMEOUT_SECONDS = 300;

/** The second static pod that takes a revision back which does not come up (spec 20, 5.4; spec 30, 17.1). */
export function startupMonitorPod(options: {
  readonly operatorImage: string;
  readonly operatorCommand: readonly string[];
  readonly verbosity: number;
}): Pod {
  const { operatorImage, operatorCommand, verbosity } = options;
  const revision = `${RESOURCE_DIRECTORY}/${REVISION_DIRECTORY_PREFIX}-REVISION`;
  // The content of the own revision is laid over the directory of all revisions: that is where the kubeconfig looks for it.
  const overlay = ['secrets', 'configmaps'].map(subPath => ({
    name: 'pod-resource-dir',
    mountPath: `${RESOURCE_DIRECTORY}/${subPath}`,
    subPath,
    readOnly: true,
  }));
  const directories = [
    ['resource-dir', RESOURCE_DIRECTORY],
    ['manifests', MANIFEST_DIRECTORY],
    ['var-lock', LOCK_DIRECTORY],
    ['var-log', AUDIT_DIRECTORY],
  ] as const;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace: OPERAND_NAMESPACE,
      name: 'kube-apiserver-startup-monitor',
      labels: { revision: 'REVISION' },
    },
    spec: {
      hostNetwork: true,
      priorityClassName: 'system-node-critical',
      terminationGracePeriodSeconds: 5,
      tolerations: [{ operator: 'Exists' }],
      containers: [
        {
          name: 'startup-monitor',
          image: operatorImage,
          imagePullPolicy: 'IfNotPresent',
          terminationMessagePolicy: 'FallbackToLogsOnError',
          command: [...operatorCommand, 'startup-monitor'],
          args: [
            `-v=${verbosity}`,
            `--fallback-timeout-duration=${FALLBACK_TIMEOUT_SECONDS}s`,
            '--target-name=kube-apiserver',
            `--manifests-dir=${MANIFEST_DIRECTORY}`,
            `--resource-dir=${RESOURCE_DIRECTORY}`,
            `--installer-lock-file=${LOCK_DIRECTORY}/kube-apiserver-installer.lock`,
            '--revision=REVISION',
            '--node-name=NODE_NAME',
            `--kubeconfig=${mountedFile('ConfigMap', 'kube-apiserver-cert-syncer-kubeconfig', 'kubeconfig')}`,
            `--log-file-path=${AUDIT_DIRECTORY}/startup.log`,
          ],
          securityContext: { privileged: true },
          resources: { requests: { memory: '50Mi', cpu: '5m' } },
          volumeMounts: [...directories.map(([name, path]) => ({ name, mountPath: path })), ...overlay],
        },
      ],
      volumes: [...directories, ['pod-resource-dir', revision] as const].map(([name, path]) => ({
        name,
        hostPath: { path },
      })),
    },
  };
}
