import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { isAlreadyExists } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { CallOptions, Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import type { ControllerConfig } from '../../machine-config-api/controller-config.ts';
import {
  CA_BUNDLE_KEY,
  KUBECONFIG_DATA,
  MCO_NAMESPACE,
  SERVER_CA_DIGEST,
  SERVICE_CA_ROTATE,
} from '../../machine-config-api/names.ts';
import {
  decideServerCa,
  digestOf,
  type HandOver,
  isNodeBehind,
  type ServerCaDecision,
} from '../controller-config/server-ca.ts';
import { readBytes } from '../source/config-map.ts';
import { holdsCertificate } from '../source/trust-bundle.ts';

export const SERVER_CA = 'kube-apiserver-server-ca';

/** Follows the CA of the API server into `kubeconfig-data` (spec 50, CC-6 to CC-8). Remembers since when it is what it is. */
export class ServerCaFollower {
  readonly #handOver: HandOver;
  #seen: { readonly digest: string; readonly since: Date } | undefined;
  #differsSince: Date | undefined;

  constructor(handOver: HandOver = 'receipts') {
    this.#handOver = handOver;
  }

  /** Writes `kubeconfig-data` where it has to be, and says what ControllerConfig is to announce. */
  async follow(
    kube: Kube,
    source: ConfigMap | undefined,
    controllerConfig: ControllerConfig | undefined,
    nodes: readonly Node[],
    now: Date,
    options: CallOptions = {},
  ): Promise<ServerCaDecision> {
    const serverCa = bundleOf(source);
    const stored = await getIfPresent(kube, CONFIG_MAPS, { namespace: MCO_NAMESPACE, name: KUBECONFIG_DATA }, options);
    const bundle = stored && keyOf(stored);
    const annotations = controllerConfig?.metadata?.annotations ?? {};
    const decision = decideServerCa(
      {
        serverCa,
        kubeconfigData: stored && { bundle },
        handOver: this.#handOver,
        stableSince: this.#stableSince(serverCa, now),
        differsSince: this.#differingSince(serverCa, bundle, now),
        announced: { rotate: annotations[SERVICE_CA_ROTATE], digest: annotations[SERVER_CA_DIGEST] },
        isAnyNodeBehind: digest => nodes.some(node => isNodeBehind(node, digest)),
      },
      now,
    );
    if (decision.bundle !== undefined) await write(kube, stored, decision.bundle, options);
    return decision;
  }

  #stableSince(serverCa: Buffer | undefined, now: Date): Date {
    if (serverCa === undefined) return now;
    const digest = digestOf(serverCa);
    if (this.#seen?.digest !== digest) this.#seen = { digest, since: now };
    return this.#seen.since;
  }

  #differingSince(serverCa: Buffer | undefined, stored: Buffer | undefined, now: Date): Date {
    const differs = serverCa !== undefined && stored?.equals(serverCa) !== true;
    this.#differsSince = differs ? (this.#differsSince ?? now) : undefined;
    return this.#differsSince ?? now;
  }
}

async function write(kube: Kube, stored: ConfigMap | undefined, bundle: Buffer, options: CallOptions): Promise<void> {
  const binaryData = { [CA_BUNDLE_KEY]: bundle.toString('base64') };
  const key = { namespace: MCO_NAMESPACE, name: KUBECONFIG_DATA };
  if (stored === undefined) {
    const created: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...key }, binaryData };
    await kube.create(CONFIG_MAPS, created, options).catch((error: unknown) => {
      // Somebody was faster; the next pass compares.
      if (!isAlreadyExists(error)) throw error;
    });
    return;
  }
  // A value in `data` under the same key would be refused, and nobody reads it.
  const data = stored.data?.[CA_BUNDLE_KEY] === undefined ? {} : { data: { [CA_BUNDLE_KEY]: null } };
  await kube.patch(CONFIG_MAPS, key, { type: 'merge', body: { binaryData, ...data } }, options);
}

/** A bundle without a certificate is not taken: nodes would trust no API server any more. */
function bundleOf(source: ConfigMap | undefined): Buffer | undefined {
  const bundle = source && keyOf(source);
  return bundle !== undefined && holdsCertificate(bundle) ? bundle : undefined;
}

function keyOf(configMap: ConfigMap): Buffer | undefined {
  const has = [configMap.data, configMap.binaryData].some(part => Object.hasOwn(part ?? {}, CA_BUNDLE_KEY));
  return has ? readBytes(configMap, CA_BUNDLE_KEY) : undefined;
}
