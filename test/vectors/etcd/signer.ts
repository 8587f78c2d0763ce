import assert from 'node:assert/strict';
import { TLS_CERT } from '../../../src/certrotation/secret.ts';
import { createRegistry } from '../../../src/controller/metrics.ts';
import { RetryRequest } from '../../../src/controller/reconcile.ts';
import { rolloutRevisionOf } from '../../../src/etcd/aggregate.ts';
import { CERT_SIGNER_CONDITION } from '../../../src/etcd/cert-signer/controller.ts';
import { syncCertificates } from '../../../src/etcd/cert-signer/sync.ts';
import { decideLeaves } from '../../../src/etcd/hand-over.ts';
import { expirationMetrics, noExpirationMetrics } from '../../../src/etcd/metrics.ts';
import { ROLLOUT_REVISION } from '../../../src/etcd/names.ts';
import { profile416 } from '../../../src/etcd/profile.ts';
import { decideQuorum } from '../../../src/etcd/quorum/decide.ts';
import { foreignSigner, TestEtcd, type TestEtcdOptions } from '../../../src/etcd/testing.ts';
import { KubeError } from '../../../src/kube/error.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { CONFIG_MAPS, SECRETS } from '../../../src/kube/resource.ts';
import { systemKeys } from '../../../src/pki/keys.ts';
import { intercepted } from '../../../src/staticpod/testing.ts';
import { type Adapter, attempt, checkError, type Json } from './case.ts';
import { questionOf, ruleOf } from './quorum.ts';

const ETCD = 'openshift-etcd';
const CONFIG = 'openshift-config';

export const signerAdapters: Record<string, Adapter> = {
  'cert-signer': {
    given: [
      'bootstrapConfigMapStatus',
      'latestAvailableRevision',
      'nodeStatuses',
      'members',
      'quorumCheckerResult',
      'callIndex',
      'nodes',
      'openshiftConfigSecrets',
      'deleted',
      'nodeWithoutInternalIP',
    ],
    expected: [
      'syncErrorPrefix',
      'syncError',
      'writes',
      'degradedConditionTouched',
      'openshiftEtcdSecrets',
      'openshiftEtcdBundles',
      'metric',
      'recreated',
      'contentDiffers',
      'etcdAllCertsChanged',
      'condition',
      'isError',
    ],
    async run({ given, expected }, version) {
      let calls = 0;
      const quorum = async () => {
        calls++;
        if (given.quorumCheckerResult !== undefined) {
          const { safe, error } = calls === (given.callIndex ?? 1) ? given.quorumCheckerResult : { safe: true, error: null };
          return error === null ? { safe } : { safe, error };
        }
        return given.members === undefined ? { safe: true } : decideQuorum(questionOf(given), ruleOf(version));
      };
      const names: string[] = given.nodes ?? ['master-0', 'master-1', 'master-2'];
      const nodes = Object.fromEntries(names.map((name, index) => [name, [`10.0.0.${index + 1}`]]));
      if (given.nodeWithoutInternalIP !== undefined) nodes[given.nodeWithoutInternalIP] = [];
      const registry = createRegistry();
      const etcd = await cluster416({ nodes, quorum, metrics: expirationMetrics(registry) }, given.openshiftConfigSecrets);
      if (given.deleted !== undefined) await etcd.settle();
      calls = 0;
      const before = await etcd.snapshot();
      for (const name of given.deleted ?? []) await etcd.kube.delete(SECRETS, { namespace: ETCD, name });
      const error = await attempt(() => etcd.sync());
      checkError(withoutHint(error), { syncError: null, ...expected, ...(expected.syncErrorPrefix === undefined ? {} : { syncError: undefined }) });
      const after = await etcd.snapshot();
      const own = (kind: string) => [...after.keys()].filter(key => key.startsWith(`${kind} ${ETCD}/`)).map(key => key.split('/')[1] as string);
      if (expected.writes !== undefined) assert.deepEqual(after, before);
      if (expected.openshiftEtcdSecrets !== undefined) assert.deepEqual(own('Secret').toSorted(), expected.openshiftEtcdSecrets.toSorted());
      if (expected.openshiftEtcdBundles !== undefined) assert.deepEqual(own('ConfigMap').toSorted(), expected.openshiftEtcdBundles.toSorted());
      for (const name of expected.recreated ?? []) {
        const key = `Secret ${ETCD}/${name}`;
        assert.ok(after.has(key));
        assert.equal(after.get(key) !== before.get(key), expected.contentDiffers ?? true);
      }
      if (expected.etcdAllCertsChanged !== undefined) {
        const key = `Secret ${ETCD}/etcd-all-certs`;
        assert.equal(after.get(key) !== before.get(key), expected.etcdAllCertsChanged);
      }
      const condition = await etcd.condition();
      if (expected.condition !== undefined) {
        const { type, status, reason } = expected.condition;
        assert.equal(type, CERT_SIGNER_CONDITION);
        assert.deepEqual([condition?.status, condition?.reason], [status, reason]);
      }
      if (expected.degradedConditionTouched !== undefined) {
        // 4.16 says nothing at its first check. The promise we keep: a lost quorum shows at either check.
        assert.equal(condition?.status, 'True');
        assert.ok(condition.message?.includes('insufficient quorum'));
      }
      if (expected.metric !== undefined) {
        const text = await registry.metrics();
        for (const { name } of expected.metric.labels) assert.ok(text.includes(`${expected.metric.name}{name="${name}"}`));
      }
    },
  },

  metrics: {
    given: ['openshiftConfigSignerValidityDays', 'signerValidityDays'],
    expected: ['gauge', 'toleranceRelative'],
    async run({ given, expected }) {
      const registry = createRegistry();
      const lifetimeDays = given.openshiftConfigSignerValidityDays ?? given.signerValidityDays;
      const etcd = await cluster416({ metrics: expirationMetrics(registry) }, undefined, lifetimeDays);
      await etcd.sync();
      const text = await registry.metrics();
      for (const [name, wanted] of Object.entries<number>(expected.gauge)) {
        const found = Number(new RegExp(`signer_expiration_days\\{name="${name}"\\} (\\S+)`).exec(text)?.[1]);
        assert.ok(Math.abs(found - wanted) <= (expected.toleranceRelative ?? 0.01), `${name}: ${found}`);
      }
    },
  },

  'signer-rotation': {
    given: ['delete', 'bundleBefore', 'removeAnnotations', 'from', 'replace', 'copy'],
    expected: [
      'bundleAfter',
      'bundleChanged',
      'leavesReissued',
      'revisionsMin',
      'revisionsMax',
      'anythingChanges',
      'sameSyncAddsToBundle',
      'sameSyncReissuesLeaves',
      'gated',
      'risk',
    ],
    async run({ given, expected }) {
      const etcd = await cluster416();
      await etcd.sync();
      await etcd.rollOut();
      await etcd.sync();
      const before = await etcd.snapshot();
      const bundleBefore = (await etcd.bundle()).length;
      await changeSigner(etcd, given);
      const changedBy = await etcd.snapshot();
      await etcd.sync();
      const after = await etcd.snapshot();
      const differs = (name: string, from = before) => from.get(name) !== after.get(name);
      const areLeavesNew = differs(`Secret ${ETCD}/etcd-all-certs`);
      const isBundleNew = differs(`ConfigMap ${ETCD}/etcd-ca-bundle`);
      // A name for each: only how many there are can be told.
      if (expected.bundleAfter !== undefined) assert.equal((await etcd.bundle()).length, [...expected.bundleAfter].length);
      if (given.bundleBefore !== undefined) assert.equal(bundleBefore, given.bundleBefore.length);
      if (expected.revisionsMax !== undefined) assert.ok(Number(isBundleNew) + Number(areLeavesNew) <= expected.revisionsMax);
      if (expected.bundleChanged !== undefined) assert.equal(isBundleNew, expected.bundleChanged);
      if (expected.leavesReissued !== undefined) assert.equal(areLeavesNew, expected.leavesReissued);
      if (expected.anythingChanges !== undefined) assert.equal([...after].some(([name]) => differs(name, changedBy)), expected.anythingChanges);
      if (expected.revisionsMin !== undefined) assert.equal(isBundleNew || areLeavesNew, expected.revisionsMin > 0);
      if (expected.sameSyncAddsToBundle !== undefined) assert.equal(isBundleNew, expected.sameSyncAddsToBundle);
      if (expected.sameSyncReissuesLeaves === true && expected.gated === false) {
        // That is T-1, and built right here: the leaves wait until everybody runs with the bundle, and nobody takes the risk.
        assert.equal(typeof (expected.risk ?? ''), 'string');
        assert.equal(areLeavesNew, false);
          await etcd.rollOut();
        await etcd.sync();
        assert.notEqual((await etcd.snapshot()).get(`Secret ${ETCD}/etcd-all-certs`), before.get(`Secret ${ETCD}/etcd-all-certs`));
      } else if (expected.sameSyncReissuesLeaves !== undefined) {
        assert.equal(areLeavesNew, expected.sameSyncReissuesLeaves);
      }
    },
  },

  'two-phase': {
    given: [
      'steps',
      'nodes',
      'revisionAdvanced',
      'etcdAllCertsData',
      'createConfigMapsError',
      'createSecretsError',
      'forceSkipRollout',
      'currentRevision',
      'bundleRolloutRevision',
      'bundleChangedInThisSync',
      'annotation',
    ],
    expected: [
      'allCertsPresent',
      'allBundlesKeys',
      'signerChanged',
      'signerBundleChanged',
      'metricsBundleChanged',
      'leavesChanged',
      'syncErrors',
      'secretsChanged',
      'bundlesChanged',
      'openshiftEtcdSecretCount',
      'openshiftEtcdConfigMapCount',
      'isError',
      'outcome',
      'errorPrefix',
      'revision',
    ],
    async run({ given, expected }) {
      if (given.annotation !== undefined) {
        const annotations = given.annotation === null ? {} : { [ROLLOUT_REVISION]: given.annotation };
        let revision: number | undefined;
        const error = await attempt(() => (revision = rolloutRevisionOf({ metadata: { annotations } })));
        checkError(error, expected);
        if (expected.revision !== undefined) assert.equal(revision, expected.revision);
        return;
      }
      if (given.currentRevision !== undefined) {
        const { currentRevision, bundleRolloutRevision: bundleRevision, bundleChangedInThisSync: bundleChangedNow, forceSkipRollout: isGateOff } = given;
        const gate = decideLeaves({ currentRevision, bundleRevision, bundleChangedNow, isGateOff });
        const outcome = gate.open ? 'issue leaves' : gate.reason.includes('triggered') ? 'skip: rollout triggered' : 'skip: safe revision not reached';
        // The words for a rollout that was just triggered are the vectors' own.
        if (expected.outcome.startsWith('skip') && bundleChangedNow) assert.equal(gate.open, false);
        else assert.equal(outcome, expected.outcome);
        return;
      }
      if (given.createConfigMapsError !== undefined || given.createSecretsError !== undefined) return failingWrites(given, expected);
      await followSteps(given, expected);
    },
  },
};

/** A cluster of 4.16 whose signers came from its installer. */
async function cluster416(
  options: Partial<TestEtcdOptions> = {},
  signers: string[] = ['etcd-signer', 'etcd-metric-signer'],
  lifetimeDays = 1825,
): Promise<TestEtcd> {
  const etcd = await TestEtcd.create({ ...options, kube: new MemoryKube(), profile: profile416() });
  for (const name of signers) await etcd.kube.create(SECRETS, await foreignSigner(name, { lifetimeDays }));
  return etcd;
}

async function changeSigner(etcd: TestEtcd, given: Json): Promise<void> {
  if (given.delete !== undefined) {
    const [namespace, name] = given.delete.split('/');
    await etcd.kube.delete(SECRETS, { namespace, name });
  } else if (given.removeAnnotations !== undefined) {
    const [namespace, name] = given.from.split('/');
    const secret = await etcd.secret(name, namespace);
    const annotations = { ...secret.metadata?.annotations };
    for (const key of given.removeAnnotations) delete annotations[key];
    await etcd.kube.update(SECRETS, { ...secret, metadata: { ...secret.metadata, annotations } });
  } else if (given.replace !== undefined) {
    const [, name] = /^openshift-config\/(\S+) with a CA that is in no bundle yet$/.exec(given.replace) ?? [];
    assert.ok(name, `unknown words: ${given.replace}`);
    const { data = {} } = await foreignSigner(name);
    await etcd.kube.update(SECRETS, { ...(await etcd.secret(name, CONFIG)), data });
  } else {
    const [, name] = /openshift-etcd\/(\S+)/.exec(given.copy ?? '') ?? [];
    assert.ok(name, `unknown words: ${JSON.stringify(given)}`);
    const { data = {} } = await etcd.secret(name);
    await etcd.kube.update(SECRETS, { ...(await etcd.secret(name, CONFIG)), data });
  }
}

async function failingWrites(given: Json, expected: Json): Promise<void> {
  const kind = given.createConfigMapsError === undefined ? SECRETS.kind : CONFIG_MAPS.kind;
  const kube = intercepted(new MemoryKube(), (verb, resource) => {
    if (verb !== 'create' || resource.kind !== kind) return;
    throw new KubeError(500, 'InternalError', given.createConfigMapsError ?? given.createSecretsError);
  });
  const etcd = await TestEtcd.create({ kube });
  const { clock, profile } = etcd;
  const quorum = async () => ({ safe: true });
  const options = { kube, clock, profile, quorum, keys: systemKeys, keyAlgorithm: 'P-256', metrics: noExpirationMetrics } as const;
  const error = await attempt(() => syncCertificates({ ...options, events: recordingEvents(), isGateOff: given.forceSkipRollout }));
  checkError(error, expected);
  assert.ok(!(error instanceof RetryRequest));
}

async function followSteps(given: Json, expected: Json): Promise<void> {
  const names: string[] = Array.isArray(given.nodes) ? given.nodes : ['cp-0', 'cp-1', 'cp-2'];
  const nodes = Object.fromEntries(names.map((name, index) => [name, [`10.0.0.${index + 1}`]]));
  const etcd = await TestEtcd.create({ kube: new MemoryKube(), nodes });
  let before = new Map<string, string>();
  const errors: (string | null)[] = [];
  const sync = async () => void errors.push((await attempt(() => etcd.sync()))?.message ?? null);
  const steps: string[] = given.steps ?? ['steady state', 'empty etcd-all-certs', 'sync'];
  for (const step of steps) {
    if (step === 'sync') await sync();
    else if (step === 'steady state') {
      await etcd.settle();
      await etcd.rollOut();
      before = await etcd.snapshot(ETCD);
      errors.length = 0;
    } else if (step.startsWith('advance')) await etcd.rollOut();
    else if (step === 'empty etcd-all-certs') await etcd.kube.update(SECRETS, { ...(await etcd.secret('etcd-all-certs')), data: given.etcdAllCertsData });
    else if (/^delete openshift-etcd\/etcd-(metric-)?signer$/.test(step)) await etcd.kube.delete(SECRETS, { namespace: ETCD, name: step.split('/')[1] ?? '' });
    else if (/^delete openshift-etcd\/etcd-all-bundles$/.test(step)) await etcd.kube.delete(CONFIG_MAPS, { namespace: ETCD, name: 'etcd-all-bundles' });
    else if (/^add node (\S+)$/.test(step)) await etcd.addNode(step.split(' ')[2] ?? '', ['10.0.0.44']);
    else assert.fail(`unknown step: ${step}`);
  }
  const after = await etcd.snapshot(ETCD);
  const changed = (pattern: RegExp) => [...after].some(([name, content]) => pattern.test(name) && before.get(name) !== content);
  const checks: Record<string, () => unknown> = {
    signerChanged: () => changed(/^Secret .*\/etcd-signer$/),
    signerBundleChanged: () => changed(/^ConfigMap .*\/etcd-ca-bundle$/),
    metricsBundleChanged: () => changed(/^ConfigMap .*\/etcd-metrics-ca-bundle$/),
    leavesChanged: () => changed(/^Secret .*\/etcd-(peer|serving|client|metric-client|all-certs)/),
    secretsChanged: () => changed(/^Secret /),
    bundlesChanged: () => changed(/^ConfigMap .*bundle/),
    syncErrors: () => errors,
    openshiftEtcdSecretCount: () => ours(after, 'Secret'),
    openshiftEtcdConfigMapCount: () => ours(after, 'ConfigMap'),
  };
  for (const [word, find] of Object.entries(checks)) if (expected[word] !== undefined) assert.deepEqual(find(), expected[word], word);
  if (expected.allCertsPresent) {
    const { data = {} } = await etcd.secret('etcd-all-certs');
    for (const node of await etcd.nodeNames()) {
      for (const prefix of ['etcd-peer-', 'etcd-serving-', 'etcd-serving-metrics-']) {
        assert.equal(data[`${prefix}${node}.crt`], (await etcd.secret(`${prefix}${node}`)).data?.[TLS_CERT]);
      }
    }
  }
  if (expected.allBundlesKeys !== undefined) {
    assert.deepEqual(Object.keys((await etcd.configMap('etcd-all-bundles')).data ?? {}).toSorted(), expected.allBundlesKeys.toSorted());
  }
  if (!steps.some(step => /^(delete|add)/.test(step)) || given.revisionAdvanced !== false) assert.deepEqual(await etcd.refusals(), []);
}

/** Objects that are not copies of a revision. */
function ours(snapshot: Map<string, string>, kind: string): number {
  return [...snapshot.keys()].filter(key => key.startsWith(`${kind} `) && !/-\d+$/.test(key.replace(/-(cp|master)-\d+$/, '-node'))).length;
}

/** The seed's words are added to upstream's, so that whoever looks for either finds it. */
function withoutHint(error: Error | undefined): Error | undefined {
  const hint = '; skipping EtcdCertSignerController reconciliation due to insufficient quorum';
  return error?.message.endsWith(hint) ? new Error(error.message.slice(0, -hint.length)) : error;
}
