/** A real kubelet with containerd: it runs etcd as a static pod, from an image that came from no registry. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import { KubeletNode, missingForContainers } from './real-kubelet.ts';

const binaries = findBinaries(['etcd', 'kubelet']);
const skip = 'missing' in binaries ? binaries.missing : (missingForContainers() ?? false);
const IMAGE = 'localhost/etcd:1';
const CLIENT_PORT = 2379;

describe('a real kubelet', { skip }, () => {
  let node: KubeletNode;
  before(async () => {
    const { kubelet, etcd } = binaries as Binaries;
    node = await KubeletNode.start(kubelet, { [IMAGE]: [etcd] });
  });
  after(() => node?.stop());

  test('runs a static pod with host paths and probes, replaces it when the manifest changes, and ends it without one', async () => {
    const log = () => node.logOf('kubelet');
    node.manifest('etcd', etcdPod('1'));
    const first = await eventually('etcd', () => node.running(IMAGE)[0], log);
    await eventually('etcd answers', isWell, log);

    node.manifest('etcd', etcdPod('2'));
    const second = await eventually('another etcd', () => node.running(IMAGE).find(pid => pid !== first), log);
    await eventually('etcd answers again, with what it had', isWell, log);
    assert.notEqual(second, first);

    process.kill(second, 'SIGKILL');
    await eventually('a third etcd', () => node.running(IMAGE).find(pid => pid !== second), log);
    await eventually('etcd answers after its death', isWell, log);

    node.manifest('etcd', undefined);
    await eventually('no etcd', () => node.running(IMAGE).length === 0, log);
  });

  async function isWell(): Promise<boolean> {
    return (await fetch(`http://${node.address}:${CLIENT_PORT}/health`)).ok;
  }

  function etcdPod(revision: string): Pod {
    const client = `http://${node.address}:${CLIENT_PORT}`;
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'etcd', namespace: 'kube-system', labels: { revision } },
      spec: {
        hostNetwork: true,
        terminationGracePeriodSeconds: 5,
        containers: [
          {
            name: 'etcd',
            image: IMAGE,
            imagePullPolicy: 'Never',
            command: ['/bin/etcd', '--data-dir=/var/lib/etcd', `--listen-client-urls=${client}`],
            args: [`--advertise-client-urls=${client}`, `--listen-peer-urls=http://${node.address}:2380`],
            readinessProbe: { httpGet: { host: node.address, port: CLIENT_PORT, path: '/health' } },
            volumeMounts: [{ name: 'data', mountPath: '/var/lib/etcd' }],
          },
        ],
        volumes: [{ name: 'data', hostPath: { path: node.directory('etcd') } }],
      },
    };
  }
});
