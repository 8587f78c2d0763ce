import { posix } from 'node:path';
import type { HostFiles } from '../../host/port.ts';
import { type Access, type Connection, RereadAccess } from '../../kube/access.ts';
import { readSmallFile } from '../../kube/small-file.ts';
import { readFileText } from './file-text.ts';
import { KubeconfigText } from './kubeconfig-text.ts';
import { KUBELET_CLIENT, KUBELET_CONF, kubeconfigPlace } from './places.ts';

/** Where a pod finds its token. */
export const POD_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

export interface NodeAccessOptions {
  /** Of the node. */
  readonly files: HostFiles;
  /** Who asks: whoever has this token, a file of this process; absent: the node itself, as its kubelet. */
  readonly tokenFile?: string | undefined;
  readonly onError?: ((error: Error) => void) | undefined;
}

/**
 * The way to the API that the node's own kubelet takes: its server and its CAs, read again when the file changes. It needs no kube-proxy,
 * and follows a new CA without anybody's help (spec 80).
 */
export function nodeAccess({ files, tokenFile, onError }: NodeAccessOptions): Access {
  const read = async (path: string) => {
    const file = await readFileText(files, path);
    if (file === undefined) throw new Error(`${path} does not exist`);
    return file.text;
  };
  const load = async (): Promise<Connection> => {
    const path = kubeconfigPlace(KUBELET_CONF);
    const config = new KubeconfigText(await read(path), path);
    if (config.server === undefined) throw new Error(`${path}: has no server`);
    const beside = (file: string) => posix.resolve(posix.dirname(path), file);
    const ca = config.authorities ?? (config.authorityFile && (await read(beside(config.authorityFile))));
    const server = new URL(config.server);
    const tls = { ca, serverName: config.serverName };
    if (tokenFile !== undefined) {
      return { server, tls, headers: { authorization: `Bearer ${await tokenIn(tokenFile)}` } };
    }
    const { certificate, key } = config;
    if (certificate !== undefined) return { server, tls: { ...tls, certificate, key }, headers: {} };
    const pair = await read(beside(config.certificateFile ?? KUBELET_CLIENT));
    return { server, tls: { ...tls, certificate: pair, key: pair }, headers: {} };
  };
  return new RereadAccess(load, { namespace: 'default', onError });
}

async function tokenIn(path: string): Promise<string> {
  const token = (await readSmallFile(path)).trim();
  if (token === '') throw new Error(`${path} is empty`);
  return token;
}
