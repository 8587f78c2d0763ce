import type { FileEntry, Template } from '../entry.ts';
import { withOneNewline } from '../values.ts';

export const rootCa: Template<FileEntry> = ({ rootCa }) => ({
  path: '/etc/kubernetes/ca.crt',
  mode: 0o644,
  contents: withOneNewline(rootCa),
});

/** Also there when it is empty, so that a bundle that is taken away is taken off machines. */
export const additionalTrustBundle: Template<FileEntry> = ({ additionalTrustBundle }) => ({
  path: '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt',
  mode: 0o600,
  contents: withOneNewline(additionalTrustBundle),
});

export const proxyEnvironment: Template<FileEntry> = ({ proxy = {} }) => {
  const { httpProxy = '', httpsProxy = '', noProxy = '' } = proxy;
  const lines = [
    '# The proxy of this cluster, for services that name this file as their EnvironmentFile.',
    ...(httpProxy === '' ? [] : [`HTTP_PROXY=${httpProxy}`]),
    ...(httpsProxy === '' ? [] : [`HTTPS_PROXY=${httpsProxy}`]),
    ...(noProxy === '' ? [] : [`NO_PROXY=${noProxy}`]),
  ];
  return { path: '/etc/mco/proxy.env', mode: 0o644, contents: `${lines.join('\n')}\n` };
};

/** Where services that are not pods find the API. */
export const apiServerUrl: Template<FileEntry> = ({ apiServerInternalUrl }) => {
  if (!URL.canParse(apiServerInternalUrl)) return undefined;
  const { hostname, port, protocol } = new URL(apiServerInternalUrl);
  const shown = port === '' ? (protocol === 'http:' ? '80' : '443') : port;
  return {
    path: '/etc/kubernetes/apiserver-url.env',
    mode: 0o644,
    contents: `KUBERNETES_SERVICE_HOST='${hostname.replace(/^\[|\]$/g, '')}'\nKUBERNETES_SERVICE_PORT='${shown}'\n`,
  };
};
