import type { ProxyStatus } from '../../machine-config-api/cluster-config.ts';
import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import { isExternalCloudProvider } from './platform.ts';

/**
 * What templates may see. The kubelet's client CA, the cloud's CA, registry CAs and the internal pull secret are not here:
 * nothing that is can come to be in a rendered config by accident, and so no rotation of theirs can reboot a node (spec 50,
 * 5.4). A template that wants more has to say so here.
 */
export interface TemplateValues {
  readonly rootCa: string;
  readonly additionalTrustBundle: string;
  /** Compact JSON; empty where there is no pull secret. */
  readonly pullSecret: string;
  readonly cloudProviderConfig: string;
  readonly proxy: ProxyStatus | undefined;
  readonly clusterDnsIp: string;
  readonly isIpv6Only: boolean;
  readonly isDualStack: boolean;
  readonly platform: string;
  /** `--cloud-provider` of the kubelet: `external` or nothing. */
  readonly cloudProvider: string;
  readonly apiServerInternalUrl: string;
  readonly images: Readonly<Record<string, string>>;
}

/** The values of a cluster. `pullSecret` is the text of the Secret that the spec names. */
export function templateValues(spec: ControllerConfigSpec, pullSecret: string): TemplateValues {
  const status = spec.infra?.status ?? {};
  return {
    rootCa: textOf(spec.rootCAData),
    additionalTrustBundle: textOf(spec.additionalTrustBundle),
    pullSecret,
    cloudProviderConfig: spec.cloudProviderConfig ?? '',
    proxy: spec.proxy ?? undefined,
    clusterDnsIp: spec.clusterDNSIP ?? '',
    isIpv6Only: spec.ipFamilies === 'IPv6',
    isDualStack: spec.ipFamilies === 'DualStack' || spec.ipFamilies === 'DualStackIPv6Primary',
    platform: status.platformStatus?.type ?? '',
    cloudProvider: isExternalCloudProvider(status.platformStatus) ? 'external' : '',
    apiServerInternalUrl: status.apiServerInternalURI ?? '',
    images: spec.images ?? {},
  };
}

/** A text that ends in exactly one line feed, or is empty. */
export function withOneNewline(text: string): string {
  const trimmed = withoutNewlines(text);
  return trimmed === '' ? '' : `${trimmed}\n`;
}

/** A text without line feeds at its end. */
export function withoutNewlines(text: string): string {
  return text.replace(/\n+$/, '');
}

function textOf(base64: string | null | undefined): string {
  return Buffer.from(base64 ?? '', 'base64').toString('utf8');
}
