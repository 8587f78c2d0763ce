import type { Container, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Config, KubeAPIServerSpec } from '../../../src/kube-apiserver/resources.ts';
import { serverConfig } from '../../../src/kube-apiserver/target-config/config.ts';
import { kubeApiserverPod } from '../../../src/kube-apiserver/target-config/pod.ts';
import { missingConfig } from '../../../src/kube-apiserver/target-config/required-config.ts';
import { podValues } from '../../../src/kube-apiserver/target-config/template.ts';
import { attempt, plain, unlike, unlikeAt } from '../difference.ts';
import { type Difference, type Judged, judged } from '../judged.ts';
import type { Random } from '../random.ts';

const program = 'kasodiff';

const maybe = (r: Random, probability: number, part: object): object => (r.chance(probability) ? part : {});

/** Whether enough has been observed. The input is a text. */
const required = judged<string>({
  name: 'required config',
  program,
  op: 'required',
  generate: r => {
    if (r.chance(0.06)) return r.pick(['', '{}', 'null', '[]', '{', '"x"', '1']);
    const value = () => r.pick<unknown>([['x'], ['x'], ['x'], [], '', 'x', null, {}, 0, false, [{}]]);
    const member = (key: string, inner: unknown) => ({ ...(r.chance(0.93) && { [key]: inner }) });
    const parent = (inner: object) => (r.chance(0.06) ? r.pick([null, 'x', [], 1]) : inner);
    const admission = 'network.openshift.io/RestrictedEndpointsAdmission';
    return JSON.stringify({
      ...member('servingInfo', parent(member('namedCertificates', value()))),
      ...member('apiServerArguments', parent(member('etcd-servers', value()))),
      ...member('admission', parent(member('pluginConfig', parent(member(admission, value()))))),
      ...maybe(r, 0.2, { other: 1 }),
    });
  },
  compare: (input, { err }) => {
    const kind = (text: string | undefined) => text?.replace(/^(error (?:parsing|reading)).*/s, '$1');
    return unlike(`"${plain(err)}"`, kind(missingConfig(input)), kind(err));
  },
});

type Spec = Pick<KubeAPIServerSpec, 'logLevel' | 'observedConfig' | 'unsupportedConfigOverrides'>;

/** The configuration that is laid over the defaults: only what is laid over is compared, the defaults are ours. */
const config = judged<{ Spec: Spec }>({
  name: 'server config',
  program,
  op: 'config',
  generate: r => ({ Spec: { observedConfig: layer(r), ...maybe(r, 0.5, { unsupportedConfigOverrides: layer(r) }) } }),
  compare: ({ Spec }, { out, err }) => {
    const mine = attempt(() => serverConfig('openshift', Spec));
    if (mine.error !== undefined || err !== undefined)
      return unlike(
        `refused: mine "${plain(mine.error)}", theirs "${plain(err)}"`,
        mine.error !== undefined,
        err !== undefined,
      );
    const given = mergedShape(Spec.observedConfig, Spec.unsupportedConfigOverrides);
    // A list without anything is no list to the server.
    return unlikeAt('config', at(mine.value, given), at(out, given), true);
  },
});

/** The paths of both layers. */
function mergedShape(...layers: readonly (Config | null | undefined)[]): Config {
  const merge = (a: unknown, b: unknown): unknown =>
    isMapping(a) && isMapping(b)
      ? Object.fromEntries(
          [...new Set([...Object.keys(a), ...Object.keys(b)])].map(key => [key, merge(a[key], b[key])]),
        )
      : isMapping(a)
        ? a
        : (b ?? a);
  return layers.reduce<unknown>((shape, layer) => merge(shape, layer ?? {}), {}) as Config;
}

/** What of a configuration stands where another one has something. */
function at(value: unknown, shape: unknown): unknown {
  if (!isMapping(shape) || !isMapping(value)) return value;
  return Object.fromEntries(
    Object.keys(shape)
      .filter(key => Object.hasOwn(value, key))
      .map(key => [key, at(value[key], shape[key])]),
  );
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const FLAGS = [
  'feature-gates',
  'etcd-servers',
  'cors-allowed-origins',
  'shutdown-delay-duration',
  'x-unknown',
] as const;

function layer(r: Random): Config {
  const flags = r.some(FLAGS).map(name => [name, r.pick<unknown>([['a'], ['a', 'b'], [], ['c=d']])]);
  const wrong = () => r.pick<unknown>(['x', 1, true, null, [], {}]);
  return {
    ...maybe(r, 0.6, { apiServerArguments: Object.fromEntries(flags) }),
    ...maybe(r, 0.4, {
      servingInfo: {
        ...maybe(r, 0.6, { minTLSVersion: r.pick(['VersionTLS12', 'VersionTLS13']) }),
        ...maybe(r, 0.6, { cipherSuites: r.some(['A', 'B', 'C']) }),
        ...maybe(r, 0.6, {
          namedCertificates: r.list(2, () => ({ certFile: '/c', keyFile: '/k', ...maybe(r, 0.5, { names: ['n'] }) })),
        }),
      },
    }),
    ...maybe(r, 0.3, { corsAllowedOrigins: r.some(['//a', '//b']) }),
    ...maybe(r, 0.3, { servicesSubnet: r.pick(['10.0.0.0/16', '']) }),
    ...maybe(r, 0.3, { imagePolicyConfig: { internalRegistryHostname: r.pick(['r', '']) } }),
    ...maybe(r, 0.3, { projectConfig: { defaultNodeSelector: r.pick(['a=b', '']) } }),
    ...maybe(r, 0.3, { authConfig: { oauthMetadataFile: r.pick(['/o', '']) } }),
    ...maybe(r, 0.3, {
      admission: {
        pluginConfig: {
          'network.openshift.io/RestrictedEndpointsAdmission': {
            configuration: { restrictedCIDRs: r.some(['10.0.0.0/8', 'fd00::/8']) },
          },
        },
        ...maybe(r, 0.3, { disabledPlugins: r.some(['P', 'Q']) }),
      },
    }),
    ...maybe(r, 0.2, { targetconfigcontroller: { proxy: { HTTP_PROXY: 'p' } } }),
    ...maybe(r, 0.2, { gracefulTerminationDuration: '120' }),
    ...maybe(r, 0.05, {
      apiVersion: r.pick(['kubecontrolplane.config.openshift.io/v1', 'v1']),
      kind: 'KubeAPIServerConfig',
    }),
    ...maybe(r, 0.06, {
      [r.pick(['servingInfo', 'apiServerArguments', 'corsAllowedOrigins', 'servicesSubnet'])]: wrong(),
    }),
    ...maybe(r, 0.05, { apiServerArguments: { 'feature-gates': wrong() } }),
  };
}

/** What of the pod depends on the cluster. */
const pods = judged<{ Spec: Spec; Monitor: boolean }>({
  name: 'server pod',
  program,
  op: 'pods',
  generate: r => ({
    Spec: {
      ...maybe(r, 0.7, { logLevel: r.pick(['Normal', 'Debug', 'Trace', 'TraceAll', '', 'Odd']) }),
      observedConfig: podLayer(r),
      ...maybe(r, 0.4, { unsupportedConfigOverrides: podLayer(r) }),
    } as Spec,
    Monitor: r.chance(0.5),
  }),
  keep: ({ out, err }) => {
    if (err !== undefined) return { err };
    const { 'pod.yaml': pod, ...rest } = out as Record<string, string>;
    return { out: { values: valuesIn(JSON.parse(pod as string) as Pod), keys: Object.keys(rest).sort() } };
  },
  compare: ({ Spec }, { out, err }): Difference[] => {
    const mine = attempt(() => {
      const options = { image: 'image', operatorImage: 'operator-image', operatorCommand: ['x'] };
      return valuesIn(kubeApiserverPod(podValues(Spec), { ...options, server: { flavor: 'openshift' } }));
    });
    if (mine.error !== undefined || err !== undefined)
      return unlike(
        `refused: mine "${plain(mine.error)}", theirs "${plain(err)}"`,
        mine.error !== undefined,
        err !== undefined,
      );
    return unlikeAt('pod', mine.value, (out as { values: unknown }).values);
  },
});

function podLayer(r: Random): object {
  const number = [
    '1',
    '60',
    '135',
    '600',
    '',
    '+7',
    '-1',
    '0x10',
    ' 5',
    '1.5',
    'abc',
    '99',
    '63',
    '100',
    '12345678901234567890',
  ];
  const value = () =>
    r.chance(0.9) ? r.pick(['60', '135', '600', '63', '75', '100']) : r.pick<unknown>([...number, 5, null, true]);
  return {
    ...maybe(r, 0.5, { gracefulTerminationDuration: value() }),
    ...maybe(r, 0.5, { garbageCollectionTargetPercentage: r.chance(0.3) ? r.pick(['10', '200', '-5']) : value() }),
    ...maybe(r, 0.4, {
      targetconfigcontroller: r.chance(0.05)
        ? r.pick<unknown>([null, 'x', { proxy: null }, { proxy: 'x' }, { proxy: { A: 1 } }])
        : {
            proxy: Object.fromEntries(
              r.some(['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'a']).map(name => [name, r.pick(['p', ''])]),
            ),
          },
    }),
  };
}

/** The values that a template put into a pod, wherever its own words are. */
function valuesIn({ spec }: Pod): object {
  const containers: Container[] = spec?.containers ?? [];
  const server = containers.find(({ name }) => name === 'kube-apiserver');
  const words = [...(server?.command ?? []), ...(server?.args ?? [])].join(' ');
  const proxies = new Set(['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'a']);
  const [setup] = spec?.initContainers ?? [];
  return {
    graceful: spec?.terminationGracePeriodSeconds,
    watched: /--graceful-termination-duration=(\S+)/.exec(words)?.[1],
    verbosity: /\s-v=(\d+)/.exec(words)?.[1],
    setup: /timeout\s+(\d+)/.exec([...(setup?.command ?? []), ...(setup?.args ?? [])].join(' '))?.[1],
    gogc: server?.env?.find(({ name }) => name === 'GOGC')?.value,
    proxy: containers.map(({ name, env = [] }) => [
      name,
      env.filter(variable => proxies.has(variable.name)).map(variable => [variable.name, variable.value ?? '']),
    ]),
  };
}

export const TARGET_CONFIG: readonly Judged[] = [required, config, pods];
