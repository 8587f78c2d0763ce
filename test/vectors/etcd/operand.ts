import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { certCleanerReconcile, decideCleanup } from '../../../src/etcd/cert-cleaner.ts';
import { endpointsReconcile } from '../../../src/etcd/endpoints.ts';
import { GRACE_START, BOOTSTRAP_IP } from '../../../src/etcd/names.ts';
import { etcdEnv, nodeVariableNames } from '../../../src/etcd/operand/env.ts';
import { targetConfigReconcile } from '../../../src/etcd/operand/target-config.ts';
import { decideQuorum } from '../../../src/etcd/quorum/decide.ts';
import { copyRules, syncRules } from '../../../src/etcd/resource-sync.ts';
import { NOW, TestEtcd } from '../../../src/etcd/testing.ts';
import { parseGoDuration, hours, minutes } from '../../../src/kube/duration.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { CONFIG_MAPS, SECRETS } from '../../../src/kube/resource.ts';
import { formatRfc3339 } from '../../../src/kube/time.ts';
import { liveObjects } from '../../../src/staticpod/objects.ts';
import { envVarName } from '../../../src/staticpod/node/tokens.ts';
import { resourceSyncReconcile } from '../../../src/staticpod/resource-sync.ts';
import { type Adapter, attempt, checkError, healthOf, type Json, profileOf } from './case.ts';
import { questionOf, ruleOf } from './quorum.ts';

const CLUSTER_STATE = ['bootstrapConfigMapStatus', 'latestAvailableRevision', 'nodeStatuses', 'members', 'strategy'];

export const operandAdapters: Record<string, Adapter> = {
  endpoints: {
    given: ['existingConfigMap', 'nodes', ...CLUSTER_STATE],
    expected: ['action', 'data', 'bootstrapAnnotation', 'syncErrorPrefix', 'syncError'],
    async run({ given, expected }, version) {
      const etcd = await clusterIn(given);
      const key = { namespace: 'openshift-etcd', name: 'etcd-endpoints' };
      if (given.existingConfigMap !== null) {
        const { data, bootstrapIP } = given.existingConfigMap;
        const annotations = bootstrapIP ? { [BOOTSTRAP_IP]: bootstrapIP } : {};
        await etcd.kube.create(CONFIG_MAPS, { metadata: { ...key, annotations }, data });
      }
      const before = await etcd.kube.get(CONFIG_MAPS, key).catch(() => undefined);
      const { kube, members, operator } = etcd;
      const quorum = async () => decideQuorum(questionOf(given), ruleOf(version));
      const error = await attempt(() => etcd.sync(endpointsReconcile({ kube, members, operator, quorum })));
      checkError(error, { syncErrorPrefix: null, ...expected });
      const after = await etcd.kube.get(CONFIG_MAPS, key).catch(() => undefined);
      const isSame = before?.metadata?.resourceVersion === after?.metadata?.resourceVersion;
      assert.equal(before === undefined && after !== undefined ? 'create' : isSame ? 'none' : 'update', expected.action);
      if (expected.data !== undefined) assert.deepEqual(after?.data, expected.data);
      if (expected.bootstrapAnnotation !== undefined) {
        assert.equal(after?.metadata?.annotations?.[BOOTSTRAP_IP] ?? null, expected.bootstrapAnnotation);
      }
      assert.equal((await etcd.condition('EtcdEndpointsDegraded'))?.status, error === undefined ? 'False' : 'True');
    },
  },

  'target-config': {
    given: CLUSTER_STATE,
    expected: ['syncError', 'syncErrorPrefix'],
    async run({ given, expected }, version) {
      const etcd = await clusterIn(given);
      await etcd.kube.create(CONFIG_MAPS, { metadata: { namespace: 'openshift-etcd', name: 'etcd-endpoints' }, data: { '1': '10.0.0.1' } });
      const { kube, operator } = etcd;
      const reconcile = targetConfigReconcile({
        kube,
        operator,
        profile: profileOf('4.16'),
        quorum: async () => decideQuorum(questionOf(given), ruleOf(version)),
        image: 'etcd',
        operatorImage: 'rotunda',
        command: ['rotunda'],
        listenOn: 'all',
        withMetricsProxy: true,
        version: '1',
      });
      const error = await attempt(() => etcd.sync(reconcile));
      checkError(error, expected);
      const pod = await etcd.configMap('etcd-pod').catch(() => undefined);
      assert.equal(pod !== undefined, error === undefined);
    },
  },

  env: {
    given: ['nodes', 'endpoints', 'bootstrapIP', 'etcdAllCertsKeys', 'nodeName', 'nodeStatuses', 'serviceNetwork'],
    expected: ['env', 'error', 'suffix', 'variables'],
    async run({ given, expected }, version) {
      if (given.nodeName !== undefined) {
        const { ip, urlHost, name } = nodeVariableNames(given.nodeName);
        if (expected.suffix !== undefined) assert.equal(envVarName(given.nodeName), expected.suffix);
        if (expected.variables !== undefined) assert.deepEqual([ip, urlHost, name], expected.variables);
        return;
      }
      const nodes: [string, string][] = Array.isArray(given.nodes)
        ? given.nodes.map((name: string, index: number) => [name, `10.0.0.${index + 1}`])
        : Object.entries(given.nodes);
      const addresses = given.endpoints ?? nodes.map(([, address]) => address);
      const keys: string[] = given.etcdAllCertsKeys ?? nodes.map(([name]) => `etcd-serving-${name}.key`);
      const network = given.serviceNetwork ? { status: { serviceNetwork: [given.serviceNetwork].flat() } } : undefined;
      let env: Readonly<Record<string, string>> = {};
      const error = await attempt(() => {
        env = etcdEnv({
          profile: profileOf(version),
          nodeNames: (given.nodeStatuses ?? nodes.map(([name]) => name)).map((entry: Json) => entry.nodeName ?? entry),
          nodes: nodes.map(([name, address]) => ({ metadata: { name }, status: { addresses: [{ type: 'InternalIP', address }] } })),
          network,
          endpoints: {
            metadata: { annotations: given.bootstrapIP ? { [BOOTSTRAP_IP]: given.bootstrapIP } : {} },
            data: { ...addresses },
          },
          allCerts: { data: Object.fromEntries(keys.map(key => [key, 'eA=='])) },
          spec: {},
          image: 'etcd',
        });
      });
      checkError(error, { error: expected.error ?? null });
      for (const [name, value] of Object.entries(expected.env ?? {})) assert.equal(env[name], value, name);
    },
  },

  'resource-sync': {
    given: ['deleted'],
    expected: ['rules', 'destinationsDeleted'],
    async run({ given, expected }, version) {
      const profile = profileOf(version);
      if (expected.rules !== undefined) {
        const found = copyRules(profile).map(({ kind, source, destination, onlyIfSourceExists }) => ({
          kind,
          source: `${source.namespace}/${source.name}`,
          destination: `${destination.namespace}/${destination.name}`,
          onlyIfSourceExists,
        }));
        const byText = (rules: Json[]) => rules.map(rule => JSON.stringify(rule, Object.keys(rule).sort())).sort();
        assert.deepEqual(byText(found), byText(expected.rules));
        return;
      }
      const etcd = await TestEtcd.create({ kube: new MemoryKube(), profile });
      const [namespace = '', name = ''] = given.deleted.split('/');
      for (const { kind, source } of copyRules(profile)) {
        const resource = kind === 'Secret' ? SECRETS : CONFIG_MAPS;
        const data = kind === 'Secret' ? { 'tls.crt': 'eA==' } : { 'ca-bundle.crt': 'x' };
        await etcd.kube.create(resource, { metadata: source, data } as Json).catch(() => {});
      }
      const { kube, operator } = etcd;
      const reconcile = resourceSyncReconcile({ rules: syncRules(profile, liveObjects(kube)), operator, kube, cached: liveObjects(kube), events: etcd.context.events });
      await etcd.sync(reconcile);
      const places = async () => {
        const found = new Set<string>();
        for (const resource of [SECRETS, CONFIG_MAPS] as const) {
          for (const { metadata } of (await kube.list<Json>(resource)).items) found.add(`${metadata?.namespace}/${metadata?.name}`);
        }
        return found;
      };
      const before = await places();
      const isSecret = copyRules(profile).some(rule => rule.kind === 'Secret' && rule.source.name === name && rule.source.namespace === namespace);
      await kube.delete(isSecret ? SECRETS : CONFIG_MAPS, { namespace, name });
      await etcd.sync(reconcile);
      const gone = [...before].filter(place => place !== given.deleted);
      const left = await places();
      assert.deepEqual(gone.filter(place => !left.has(place)), expected.destinationsDeleted);
    },
  },

  'cert-cleaner': {
    given: ['nodes', 'secrets'],
    expected: ['annotated', 'deleted', 'annotationRemoved', 'ripeForDeletion', 'isError', 'error', 'errorPrefix', 'untouched'],
    async run({ given, expected }) {
      const nodes = Object.fromEntries(given.nodes.map((name: string, index: number) => [name, [`10.0.0.${index + 1}`]]));
      const etcd = await TestEtcd.create({ kube: new MemoryKube(), nodes });
      for (const { name, graceStart, graceStartAgeHours } of given.secrets) {
        const mark = graceStartAgeHours === undefined ? graceStart : formatRfc3339(new Date(NOW.getTime() - hours(graceStartAgeHours)));
        const annotations = mark === undefined || mark === null ? {} : { [GRACE_START]: mark };
        await etcd.kube.create(SECRETS, { metadata: { namespace: 'openshift-etcd', name, annotations } });
      }
      const { items } = await etcd.kube.list(SECRETS, { namespace: 'openshift-etcd' });
      const ripe = decideCleanup(items, given.nodes, NOW).filter(step => step.do === 'delete').length;
      if (expected.ripeForDeletion !== undefined) assert.equal(ripe, expected.ripeForDeletion);
      const error = await attempt(() => etcd.sync(certCleanerReconcile(etcd.kube)));
      checkError(error, { isError: false, ...expected });
      const after = new Map((await etcd.kube.list(SECRETS, { namespace: 'openshift-etcd' })).items.map(secret => [secret.metadata?.name ?? '', secret]));
      const markOf = (name: string) => after.get(name)?.metadata?.annotations?.[GRACE_START];
      for (const name of expected.annotated ?? []) assert.equal(markOf(name), formatRfc3339(NOW));
      for (const name of expected.annotationRemoved ?? []) assert.ok(after.has(name) && markOf(name) === undefined);
      if (expected.deleted !== undefined) {
        const gone = given.secrets.map(({ name }: Json) => name).filter((name: string) => !after.has(name));
        assert.deepEqual(gone, expected.deleted);
      }
    },
  },

  alerts: {
    given: ['signerExpirationDays', 'conditionHeldMinutes'],
    expected: ['etcdSignerCAExpirationWarning', 'etcdSignerCAExpirationCritical'],
    run({ given, expected }) {
      const rules = alertRules();
      for (const [name, fires] of Object.entries(expected)) {
        const rule = rules.get(name);
        assert.ok(rule, `no alert ${name}`);
        const [, threshold] = /^avg by \(name\) \(openshift_etcd_operator_signer_expiration_days\) < (\d+)$/.exec(rule.expr) ?? [];
        assert.ok(threshold, `an expression this test does not understand: ${rule.expr}`);
        const heldFor = parseGoDuration(rule.for) as number;
        const isFiring = given.signerExpirationDays < Number(threshold) && minutes(given.conditionHeldMinutes) >= heldFor;
        assert.equal(isFiring, fires, name);
      }
    },
  },
};

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
}

/** The alerts that are shipped. */
function alertRules(): Map<string, AlertRule> {
  const text = readFileSync(new URL('../../../manifests/monitoring/etcd-rules.yaml', import.meta.url), 'utf8');
  const { spec } = load(text) as { spec: { groups: { rules: AlertRule[] }[] } };
  return new Map(spec.groups.flatMap(({ rules }) => rules).map(rule => [rule.alert, rule]));
}

/** A cluster whose members and rollout are what the vector says. */
async function clusterIn(given: Json): Promise<TestEtcd> {
  const names: string[] = (given.nodeStatuses ?? []).map(({ nodeName }: Json) => nodeName);
  const nodes = Object.fromEntries(names.map((name, index) => [name, [`10.0.0.${index + 1}`]]));
  const etcd = await TestEtcd.create({ kube: new MemoryKube(), nodes });
  if (given.bootstrapConfigMapStatus !== null && given.bootstrapConfigMapStatus !== undefined) {
    const data = { status: given.bootstrapConfigMapStatus };
    await etcd.kube.create(CONFIG_MAPS, { metadata: { namespace: 'kube-system', name: 'bootstrap' }, data });
  }
  await etcd.setStatus({ latestAvailableRevision: given.latestAvailableRevision, nodeStatuses: given.nodeStatuses });
  etcd.members.replace(healthOf(given.members ?? []));
  return etcd;
}

