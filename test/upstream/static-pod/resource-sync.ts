import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { CONFIG_MAPS, SECRETS } from '../../../src/kube/resource.ts';
import { liveObjects } from '../../../src/staticpod/objects.ts';
import { resourceSyncReconcile, SyncRules } from '../../../src/staticpod/resource-sync.ts';
import { TestCluster } from '../../../src/staticpod/testing.ts';
import { unlike, unlikeAt } from '../difference.ts';
import { judged } from '../judged.ts';
import { distinct, type Random } from '../random.ts';

interface Location {
  namespace: string;
  name: string;
  provider?: string;
}

interface Rule {
  Kind: 'configmap' | 'secret';
  Destination: Location;
  /** Without a name: the destination is to be deleted. */
  Source: Location;
  Keys: string[];
  Fulfilled: boolean;
}

interface Input {
  ManagementState: string;
  Namespaces: string[];
  Rules: Rule[];
  ConfigMaps: ConfigMap[];
  Secrets: Secret[];
}

interface Answered {
  refused: string[];
  condition: string[] | null;
  messages: string[];
  configMaps: Record<string, ConfigMap>;
  secrets: Record<string, Secret>;
}

const NAMESPACES = ['n1', 'n2', 'n3'];
const TOKEN = 'kubernetes.io/service-account-token';

/** Objects that are to be copies of others. */
export const RESOURCE_SYNC = judged<Input>({
  name: 'resource sync',
  program: 'lgdiff',
  op: 'resourcesync',
  generate: r => {
    const object = () => ({ metadata: metadata(r) });
    const place = ({ metadata: { namespace, name } }: ReturnType<typeof object>) => `${namespace}/${name}`;
    return {
      ManagementState: r.chance(0.95) ? 'Managed' : r.pick(['Unmanaged', 'Removed', '']),
      Namespaces: ['n1', 'n2'],
      Rules: unchained(r.times(1 + r.int(3), () => rule(r))),
      ConfigMaps: distinct(
        r.list(5, () => ({
          ...object(),
          ...(r.chance(0.9) && { data: data(r, text => text) }),
          ...(r.chance(0.2) && { binaryData: data(r, base64) }),
        })),
        place,
      ),
      Secrets: distinct(
        r.list(5, () => ({
          ...object(),
          type: r.pick(['Opaque', 'kubernetes.io/tls', TOKEN]),
          ...(r.chance(0.9) && { data: data(r, base64) }),
        })),
        place,
      ),
    };
  },
  keep: ({ out, err }) => {
    const { refused, condition, messages, configMaps, secrets } = out as Answered;
    return { out: { refused, condition, messages, configMaps, secrets }, err };
  },
  compare: async ({ ManagementState, Namespaces, Rules, ConfigMaps, Secrets }, { out }) => {
    const theirs = out as Answered;
    const cluster = new TestCluster();
    await cluster.setOperator({}, { managementState: ManagementState as 'Managed' });
    for (const object of ConfigMaps) await cluster.kube.create(CONFIG_MAPS, object);
    for (const object of Secrets) await cluster.kube.create(SECRETS, object);
    const rules = new SyncRules(Namespaces);
    const refused: string[] = [];
    for (const { Kind, Destination, Source, Keys, Fulfilled } of Rules) {
      try {
        rules.add(Kind, Destination, { ...Source, keys: Keys, precondition: () => Fulfilled });
      } catch (error) {
        refused.push((error as Error).message);
      }
    }
    const { kube, parts } = cluster;
    const events = recordingEvents();
    await cluster.run(
      resourceSyncReconcile({ rules, operator: parts.operator, kube, cached: liveObjects(kube), events }),
    );
    const condition = ((await cluster.status()).conditions ?? []).find(
      ({ type }) => type === 'ResourceSyncControllerDegraded',
    );
    const stored = async (resource: typeof CONFIG_MAPS | typeof SECRETS) =>
      Object.fromEntries(
        (await kube.list(resource as typeof CONFIG_MAPS)).items.map(object => [
          `${object.metadata?.namespace}/${object.metadata?.name}`,
          content(object),
        ]),
      );
    const theirsStored = (objects: Record<string, ConfigMap | Secret>) =>
      Object.fromEntries(Object.entries(objects).map(([place, object]) => [place, content(object)]));
    return [
      ...unlike('refused rules', refused, theirs.refused),
      ...unlike(
        'condition',
        condition && [condition.type, condition.status, condition.reason ?? ''],
        theirs.condition ?? undefined,
      ),
      ...unlike(
        'messages',
        (condition?.message ?? '').split('\n').sort(),
        theirs.condition === null ? [''] : theirs.messages,
      ),
      ...unlikeAt('configmaps', await stored(CONFIG_MAPS), theirsStored(theirs.configMaps), true),
      ...unlikeAt('secrets', await stored(SECRETS), theirsStored(theirs.secrets), true),
    ];
  },
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** What counts of an object, whoever stored it. */
function content(object: ConfigMap | Secret): object {
  const { metadata: { labels, annotations } = {}, data: texts } = object;
  const type = 'type' in object ? object.type || 'Opaque' : undefined;
  const binaryData = 'binaryData' in object ? object.binaryData : undefined;
  return { labels, annotations, data: texts, binaryData, type };
}

function metadata(r: Random) {
  const accounts = { 'kubernetes.io/service-account.name': 'sa', 'kubernetes.io/service-account.uid': 'u' };
  return {
    namespace: r.pick(NAMESPACES),
    name: r.pick(['a', 'b', 'c']),
    ...(r.chance(0.4) && { labels: { l: r.pick(['1', '2']) } }),
    ...(r.chance(0.5) && { annotations: { x: r.pick(['1', '2']), ...(r.chance(0.4) && accounts) } }),
  };
}

function data(r: Random, encode: (text: string) => string): Record<string, string> {
  return Object.fromEntries(r.some(['k1', 'k2', 'token'], 0.5).map(key => [key, encode(r.pick(['1', '2', '']))]));
}

/** Upstream goes through the rules in any order: none may copy what another one makes. */
function unchained(rules: readonly Rule[]): Rule[] {
  const isSame = (a: Location, b: Location) => a.namespace === b.namespace && a.name === b.name;
  const makes = (rule: Rule, source: Location, kind: string) => rule.Kind === kind && isSame(rule.Destination, source);
  return rules.filter(({ Source, Kind }) => !rules.some(other => makes(other, Source, Kind)));
}

function rule(r: Random): Rule {
  const place = () => ({
    namespace: r.pick(r.chance(0.05) ? NAMESPACES : ['n1', 'n2']),
    name: r.pick(['a', 'b', 'c']),
  });
  const Destination = place();
  let source: Location = place();
  // Who is a copy of itself is a riddle, not a rule.
  while (source.namespace === Destination.namespace && source.name === Destination.name) source = place();
  return {
    Kind: r.pick(['configmap', 'secret'] as const),
    Destination,
    Source: r.chance(0.12) ? { namespace: '', name: '' } : { ...source, ...(r.chance(0.3) && { provider: 'p' }) },
    Keys: r.chance(0.3) ? r.some(['k1', 'k2', 'k3']) : [],
    Fulfilled: r.chance(0.93),
  };
}
