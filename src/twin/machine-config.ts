import { Controller } from '../controller/controller.ts';
import { onChange } from '../controller/trigger.ts';
import { minutes } from '../kube/duration.ts';
import { getIfPresent } from '../kube/get.ts';
import { Informer } from '../kube/informer.ts';
import { CONFIG_MAPS, NODES } from '../kube/resource.ts';
import { SERVER_CA, ServerCaFollower } from '../machine-config/operator/server-ca.ts';
import { kubeletClientCa } from '../machine-config/source/kubelet-ca.ts';
import { CONTROLLER_CONFIGS, type ControllerConfig } from '../machine-config-api/controller-config.ts';
import {
  CONFIG_MANAGED_NAMESPACE,
  CONTROLLER_CONFIG_NAME,
  SERVER_CA_DIGEST,
  SERVICE_CA_ROTATE,
} from '../machine-config-api/names.ts';
import type { Tools } from './component.ts';

const KEY = { name: CONTROLLER_CONFIG_NAME };

/**
 * The part of the machine-config operator through which CAs pass on their way to nodes: its own decisions about the server CA and the
 * kubelets' client CA, without templates, pools and configs, which carry no certificate.
 */
export async function runCertificatePath({ kube, clock, events, log }: Tools, signal: AbortSignal): Promise<void> {
  const options = { clock };
  const configMaps = new Informer(kube, CONFIG_MAPS, {
    ...options,
    selection: { namespace: CONFIG_MANAGED_NAMESPACE },
  });
  const nodes = new Informer(kube, NODES, options);
  const controllerConfigs = new Informer<ControllerConfig>(kube, CONTROLLER_CONFIGS, options);
  const follower = new ServerCaFollower('receipts');
  const controller = new Controller({
    name: 'MachineConfigOperator',
    clock,
    events,
    log,
    resyncMs: minutes(1),
    triggers: [onChange(configMaps), onChange(nodes), onChange(controllerConfigs)],
    async reconcile(_key, context) {
      const source = (name: string) => configMaps.get({ namespace: CONFIG_MANAGED_NAMESPACE, name });
      const stored = await getIfPresent(kube, CONTROLLER_CONFIGS, KEY, { signal: context.signal });
      const decision = await follower.follow(kube, source(SERVER_CA), stored, nodes.list(), clock.now(), {
        signal: context.signal,
      });
      const again = decision.settlesAt === undefined ? undefined : { againAt: decision.settlesAt };
      if (source('kube-apiserver-client-ca') === undefined) return again;
      const kubeletCa = kubeletClientCa({
        bootstrapComplete: true,
        bringingUp: false,
        configMap: (_namespace, name) => source(name),
      });
      const annotations = {
        ...stored?.metadata?.annotations,
        [SERVICE_CA_ROTATE]: decision.rotate,
        ...(decision.digest === undefined ? {} : { [SERVER_CA_DIGEST]: decision.digest }),
      };
      const spec = { ...stored?.spec, kubeAPIServerServingCAData: kubeletCa.toString('base64') };
      if (stored === undefined)
        await kube.create(CONTROLLER_CONFIGS, { metadata: { ...KEY, annotations }, spec }, { signal: context.signal });
      else
        await kube.update(
          CONTROLLER_CONFIGS,
          { ...stored, metadata: { ...stored.metadata, annotations }, spec },
          { signal: context.signal },
        );
      return again;
    },
  });
  const informers = [configMaps, nodes, controllerConfigs];
  for (const informer of informers) informer.start();
  try {
    await controller.run(signal);
  } finally {
    await Promise.all(informers.map(informer => informer.stop()));
  }
}
