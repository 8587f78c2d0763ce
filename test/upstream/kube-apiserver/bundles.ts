import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import {
  CLIENT_CA,
  combineBundles,
  combinedConfigMap,
  SERVER_CA,
} from '../../../src/kube-apiserver/combined-bundles.ts';
import { seededKeys } from '../../../src/pki/keys.ts';
import { encodeCertificates } from '../../../src/pki/pem.ts';
import { sampleSigner } from '../../../src/pki/test-data.ts';
import { plain, unlike } from '../difference.ts';
import { judged } from '../judged.ts';

/** Two that have expired for good, and four that live for a lifetime. */
const CERTIFICATES = await Promise.all(
  [1, 1, 36_500, 36_500, 36_500, 36_500].map(async (days, index) => {
    const { chain } = await sampleSigner({
      keys: seededKeys(`bundle ${index}`),
      now: new Date('2020-01-01T00:00:00Z'),
      lifetimeMs: days * 86_400_000,
      commonName: `ca-${index}`,
    });
    return encodeCertificates(chain);
  }),
);
const ODD_TEXTS = [
  'garbage',
  '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  '-----BEGIN CERTIFICATE-----\n',
  '\n',
  '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n',
];

interface Input {
  Which: 'client' | 'server';
  ConfigMaps: { metadata: { namespace: string; name: string }; data?: Record<string, string> }[];
}

/** The bundles that are made of others. */
export const BUNDLES = judged<Input>({
  name: 'combined bundles',
  program: 'kasodiff',
  op: 'bundle',
  generate: r => {
    const Which = r.pick(['client', 'server'] as const);
    const { sources } = Which === 'client' ? CLIENT_CA : SERVER_CA;
    const text = () => {
      if (r.chance(0.04)) return r.pick(ODD_TEXTS);
      const blocks = r.list(3, () => r.pick(CERTIFICATES));
      return (r.chance(0.1) ? ['# comment\n', ...blocks, ...r.some(ODD_TEXTS, 0.1)] : blocks).join('');
    };
    const ConfigMaps = r.some(sources, 0.7).map(({ namespace, name }) => ({
      metadata: { namespace, name },
      ...(r.chance(0.97) && { data: { [r.chance(0.97) ? 'ca-bundle.crt' : 'other']: text() } }),
    }));
    return { Which, ConfigMaps };
  },
  keep: ({ out, err }) => {
    if (err !== undefined) return { err };
    const { data, metadata } = out as ConfigMap;
    return { out: { data, annotations: metadata?.annotations } };
  },
  compare: ({ Which, ConfigMaps }, { out, err }, { at }) => {
    const bundle = Which === 'client' ? CLIENT_CA : SERVER_CA;
    const find = ({ namespace, name }: { namespace: string; name: string }) =>
      ConfigMaps.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    const decision = combineBundles(bundle, find, at);
    if (decision.action === 'fail') {
      const isEmpty = decision.error.includes('would be empty') && err === undefined;
      return unlike(isEmpty ? 'an empty bundle' : `refused: "${plain(decision.error)}"`, true, err !== undefined);
    }
    if (err !== undefined) return [{ class: `upstream refuses: ${plain(err)}`, mine: decision.text, theirs: err }];
    const { data, metadata } = combinedConfigMap(bundle, decision.text);
    return unlike('bundle', { data, annotations: metadata?.annotations }, out);
  },
});
