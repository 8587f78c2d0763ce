import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { serverAddressOf } from '../kube/server-address.ts';
import { KUBE_APISERVER_PORT } from './names.ts';

/** A server of the control plane: what it shows there is the leaf of this name. */
export interface ControlPlaneServer {
  readonly chain: 'apiserver' | 'etcd-server' | 'etcd-peer';
  readonly node: string;
  readonly host: string;
  readonly port: number;
}

/** The flags of a static pod's program, by name without dashes; of a flag that is given twice the last counts. */
export function flagsOf({ spec }: Pod): ReadonlyMap<string, string> {
  const [container] = spec?.containers ?? [];
  const words = [...(container?.command ?? []), ...(container?.args ?? [])];
  return new Map(
    words.flatMap(word => {
      const [, name, value] = /^--([^=]+)=(.*)$/s.exec(word) ?? [];
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    }),
  );
}

/** The program of a static pod, as kubeadm labels it. */
export function componentOf({ metadata }: Pod): string | undefined {
  return metadata?.labels?.component;
}

/** Where kube-apiserver and a stacked etcd listen, by what their mirror pods say. */
export function serversIn(pods: readonly Pod[]): ControlPlaneServer[] {
  return pods.flatMap((pod): ControlPlaneServer[] => {
    const flags = flagsOf(pod);
    const node = pod.spec?.nodeName ?? '';
    const at = (chain: ControlPlaneServer['chain'], urls: string | undefined) =>
      (urls ?? '').split(',').flatMap(url => {
        const address = serverAddressOf(url);
        return address === undefined ? [] : [{ chain, node, host: address.host, port: address.port }];
      });
    switch (componentOf(pod)) {
      case 'kube-apiserver': {
        const host = flags.get('advertise-address') ?? pod.status?.hostIP;
        const port = Number(flags.get('secure-port') ?? KUBE_APISERVER_PORT);
        return host === undefined || !(port > 0 && port < 65_536) ? [] : [{ chain: 'apiserver', node, host, port }];
      }
      case 'etcd':
        return [
          ...at('etcd-server', flags.get('advertise-client-urls')),
          ...at('etcd-peer', flags.get('initial-advertise-peer-urls')),
        ];
      default:
        return [];
    }
  });
}
