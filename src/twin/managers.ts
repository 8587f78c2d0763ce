import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { dataText, TLS_CERT, TLS_KEY } from '../certrotation/secret.ts';
import { Controller } from '../controller/controller.ts';
import { onChange } from '../controller/trigger.ts';
import { sleep } from '../kube/clock.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { Informer } from '../kube/informer.ts';
import { CONFIG_MAPS, PODS, SECRETS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { MANAGED_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { certificatesIn } from '../pki/pem.ts';
import { caDigest, encodeReceipts, NODE_RECEIPTS } from '../trust/receipts.ts';
import type { Tools } from './component.ts';
import type { TwinNode } from './node.ts';

const NAMESPACE = 'kube-system';
const RESTART_MS = seconds(20);
const LOOK_AGAIN_MS = minutes(1);

interface Manager {
  readonly name: string;
  readonly secret: string;
  readonly pairFile: string;
  readonly caFile: string;
}

function manager(name: string): Manager {
  const secret = `${name}-client-cert-key`;
  return {
    name,
    secret,
    pairFile: `/etc/kubernetes/static-pod-certs/secrets/${secret}`,
    caFile: `${name} kubeconfig`,
  };
}

export const MANAGERS: readonly Manager[] = [manager('kube-controller-manager'), manager('kube-scheduler')];

/**
 * What the operators of kube-controller-manager and kube-scheduler do with what ours publish, as a small model: a new server CA restarts
 * the process, one node after the other, and its pod says with which CAs it began; a new client certificate is taken while it runs.
 */
export async function runManagersOperator(
  { kube, clock, events, log }: Tools,
  nodes: () => readonly TwinNode[],
  changed: () => void,
  signal: AbortSignal,
): Promise<void> {
  const selection = { namespace: MANAGED_NAMESPACE };
  const configMaps = new Informer(kube, CONFIG_MAPS, { clock, selection });
  const secrets = new Informer(kube, SECRETS, { clock, selection });
  const controller = new Controller({
    name: 'ManagersOperator',
    clock,
    events,
    log,
    resyncMs: minutes(10),
    triggers: [onChange(configMaps), onChange(secrets)],
    async reconcile() {
      const ca = configMaps.get({ ...selection, name: 'kube-apiserver-server-ca' })?.data?.[BUNDLE_KEY];
      if (ca === undefined) return undefined;
      let isAnyOff = false;
      for (const { name, secret, pairFile, caFile } of MANAGERS) {
        const found = secrets.get({ ...selection, name: secret });
        if (found === undefined) continue;
        const pair = `${dataText(found, TLS_CERT) ?? ''}${dataText(found, TLS_KEY) ?? ''}`;
        for (const node of nodes()) {
          if (!node.isControlPlane) continue;
          if (!node.isOn) {
            isAnyOff = true;
            continue;
          }
          if (node.disk.text(pairFile) !== pair) node.disk.write(pairFile, pair, 0o600);
          if (node.disk.text(caFile) === ca && node.others.has(name)) continue;
          node.disk.write(caFile, ca);
          await sleep(clock, RESTART_MS, signal);
          const before = node.others.get(name);
          if (before !== undefined) before.isOver = true;
          node.others.set(name, node.begin());
          changed();
          const receipt = {
            process: name,
            file: caFile,
            kind: 'started' as const,
            cas: certificatesIn(ca).map(caDigest),
          };
          const key = { namespace: NAMESPACE, name: `${name}-${node.name}` };
          await kube.delete(PODS, key, { gracePeriodSeconds: 0 }).catch(() => {});
          const pod: Pod = {
            metadata: {
              ...key,
              annotations: { [NODE_RECEIPTS]: encodeReceipts([receipt]), 'kubernetes.io/config.mirror': 'model' },
            },
            spec: { nodeName: node.name, containers: [{ name }] },
            status: {
              phase: 'Running',
              startTime: formatRfc3339(clock.now()),
              conditions: [{ type: 'Ready', status: 'True' }],
            },
          };
          await kube.create(PODS, pod);
        }
      }
      return isAnyOff ? { againAt: new Date(clock.now().getTime() + LOOK_AGAIN_MS) } : undefined;
    },
  });
  configMaps.start();
  secrets.start();
  try {
    await controller.run(signal);
  } finally {
    await Promise.all([configMaps.stop(), secrets.stop()]);
  }
}
