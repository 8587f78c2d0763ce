import type { Pod, Volume, VolumeMount } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';

/** A pod that runs one of our programs as root on one control-plane node, once. */
export interface NodePod {
  readonly namespace: string;
  readonly name: string;
  readonly nodeName: string;
  readonly owner: OwnerReference;
  /** `app` label and container name. */
  readonly app: string;
  readonly container: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
}

/** The account of all such pods (spec 30, 19.1). */
export const INSTALLER_ACCOUNT = 'installer-sa';

const TOKEN_SECONDS = 3600;
/** What the programs need at most; the limits of 4.16. */
const RESOURCES = { memory: '200M', cpu: '150m' };

/** Pinned to its node past the scheduler, with the host's files at hand (spec 30, 9.9.3). */
export function nodePod({ namespace, name, nodeName, owner, app, container, image, command, args }: NodePod): Pod {
  return {
    metadata: { namespace, name, labels: { app }, ownerReferences: [owner] },
    spec: {
      automountServiceAccountToken: false,
      serviceAccountName: INSTALLER_ACCOUNT,
      nodeName,
      restartPolicy: 'Never',
      priorityClassName: 'system-node-critical',
      tolerations: [{ operator: 'Exists' }],
      securityContext: { runAsUser: 0 },
      containers: [
        {
          name: container,
          image,
          imagePullPolicy: 'IfNotPresent',
          command: [...command],
          args: [...args],
          env: [
            { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
          ],
          securityContext: { privileged: true, runAsUser: 0 },
          terminationMessagePolicy: 'FallbackToLogsOnError',
          resources: { requests: RESOURCES, limits: RESOURCES },
          volumeMounts: MOUNTS,
        },
      ],
      volumes: VOLUMES,
    },
  };
}

const MOUNTS: VolumeMount[] = [
  { name: 'kubelet-dir', mountPath: '/etc/kubernetes/' },
  { name: 'var-lock', mountPath: '/var/lock' },
  { name: 'kube-api-access', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true },
];

const VOLUMES: Volume[] = [
  { name: 'kubelet-dir', hostPath: { path: '/etc/kubernetes/' } },
  { name: 'var-lock', hostPath: { path: '/var/lock' } },
  {
    name: 'kube-api-access',
    projected: {
      sources: [
        { serviceAccountToken: { path: 'token', expirationSeconds: TOKEN_SECONDS } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
          },
        },
      ],
    },
  },
];
