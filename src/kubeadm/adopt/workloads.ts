import type { DaemonSet, Deployment } from 'kubernetes-types/apps/v1.d.ts';
import type { NodeAffinity, PodSpec } from 'kubernetes-types/core/v1.d.ts';
import { CERTIFICATES_DIRECTORY, CONTROL_PLANE_LABEL, ROTUNDA_NAMESPACE } from '../names.ts';
import { AGENT, CONTROL_PLANE_AGENT, OPERATOR } from './accounts.ts';

/** Where a container of ours finds the file system of its node. */
export const HOST_ROOT = '/host';
/** On the address of the node: metrics and health. */
export const OPERATOR_PORT = 8791;
export const AGENT_PORT = 8792;

const MOST_OPERATORS = 3;
const NOBODY = 65_532;

/** The agents: on control-plane nodes, and on all others. */
export function agentDaemonSets(image: string, certificatesDirectory: string): DaemonSet[] {
  const flags = [
    `--root=${HOST_ROOT}`,
    `--listen=$(HOST_IP):${AGENT_PORT}`,
    ...(certificatesDirectory === CERTIFICATES_DIRECTORY ? [] : [`--certificates-dir=${certificatesDirectory}`]),
  ];
  return [agents(CONTROL_PLANE_AGENT, 'Exists', image, flags), agents(AGENT, 'DoesNotExist', image, flags)];
}

function agents(
  name: string,
  controlPlane: 'Exists' | 'DoesNotExist',
  image: string,
  flags: readonly string[],
): DaemonSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { namespace: ROTUNDA_NAMESPACE, name, labels: { app: name } },
    spec: {
      selector: { matchLabels: { app: name } },
      updateStrategy: {
        type: 'RollingUpdate',
        rollingUpdate: { maxUnavailable: controlPlane === 'Exists' ? 1 : '10%' },
      },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          serviceAccountName: name,
          priorityClassName: 'system-node-critical',
          hostNetwork: true,
          // systemctl has to find the init of the node.
          hostPID: true,
          dnsPolicy: 'ClusterFirstWithHostNet',
          terminationGracePeriodSeconds: 60,
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          affinity: { nodeAffinity: labelled(controlPlane) },
          // Whatever is wrong with a node: its certificates go on ending.
          tolerations: [{ operator: 'Exists' }],
          containers: [
            {
              name,
              image,
              args: [AGENT, ...flags],
              env: [environment('NODE_NAME', 'spec.nodeName'), environment('HOST_IP', 'status.hostIP')],
              ports: [{ name: 'metrics', containerPort: AGENT_PORT }],
              livenessProbe: {
                httpGet: { path: '/livez', port: 'metrics' },
                initialDelaySeconds: 120,
                periodSeconds: 30,
                timeoutSeconds: 6,
              },
              resources: { requests: { cpu: '10m', memory: '96Mi' } },
              securityContext: { privileged: true, runAsUser: 0 },
              terminationMessagePolicy: 'FallbackToLogsOnError',
              volumeMounts: [{ name: 'host', mountPath: HOST_ROOT, mountPropagation: 'HostToContainer' }],
            },
          ],
          volumes: [{ name: 'host', hostPath: { path: '/' } }],
        },
      },
    },
  };
}

/** The operator: one of them leads, the others wait. It has nothing of a node but its network, so that no network of pods is needed. */
export function operatorDeployment(image: string, controlPlaneNodes: number): Deployment {
  const labels = { app: OPERATOR };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace: ROTUNDA_NAMESPACE, name: OPERATOR, labels },
    spec: {
      replicas: Math.max(1, Math.min(controlPlaneNodes, MOST_OPERATORS)),
      selector: { matchLabels: labels },
      // Two cannot listen at one node: the old one makes room first.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      template: {
        metadata: { labels },
        spec: operatorPod(image, labels),
      },
    },
  };
}

function operatorPod(image: string, matchLabels: Record<string, string>): PodSpec {
  return {
    serviceAccountName: OPERATOR,
    priorityClassName: 'system-cluster-critical',
    hostNetwork: true,
    dnsPolicy: 'ClusterFirstWithHostNet',
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    affinity: {
      nodeAffinity: labelled('Exists'),
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels } },
        ],
      },
    },
    tolerations: [
      { key: CONTROL_PLANE_LABEL, operator: 'Exists', effect: 'NoSchedule' },
      ...['unreachable', 'not-ready'].map(state => ({
        key: `node.kubernetes.io/${state}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 120,
      })),
    ],
    securityContext: {
      runAsNonRoot: true,
      runAsUser: NOBODY,
      runAsGroup: NOBODY,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: OPERATOR,
        image,
        args: [OPERATOR, `--listen=$(HOST_IP):${OPERATOR_PORT}`],
        env: [environment('POD_NAME', 'metadata.name'), environment('HOST_IP', 'status.hostIP')],
        ports: [{ name: 'metrics', containerPort: OPERATOR_PORT }],
        livenessProbe: { httpGet: { path: '/livez', port: 'metrics' }, periodSeconds: 20, timeoutSeconds: 6 },
        readinessProbe: { httpGet: { path: '/readyz', port: 'metrics' }, periodSeconds: 10, timeoutSeconds: 6 },
        resources: { requests: { cpu: '10m', memory: '128Mi' } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        terminationMessagePolicy: 'FallbackToLogsOnError',
      },
    ],
  };
}

/** The value of the label is empty where kubeadm sets it, and something else where others do. */
function labelled(operator: 'Exists' | 'DoesNotExist'): NodeAffinity {
  return {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: CONTROL_PLANE_LABEL, operator }] }],
    },
  };
}

function environment(name: string, fieldPath: string) {
  // The version is what an API fills in: said here, to apply the same again changes nothing.
  return { name, valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } } };
}
