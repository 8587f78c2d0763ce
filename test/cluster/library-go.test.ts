/** library-go's own rotation controllers take over what ours made, and ours what theirs made, without one write. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { startApi } from '../../src/api/api.ts';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import { liveObjects } from '../../src/certrotation/ensure.ts';
import { ObjectLocks } from '../../src/certrotation/locks.ts';
import { reconcileOnce } from '../../src/certrotation/reconcile.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { createIfMissing } from '../../src/kube/create-if-missing.ts';
import { days } from '../../src/kube/duration.ts';
import { recordingEvents } from '../../src/kube/events.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, NAMESPACES, SECRETS } from '../../src/kube/resource.ts';
import { type Chain, KUBE_APISERVER_CHAINS, type ObjectName } from '../../src/kube-apiserver/chains.ts';
import { MANAGED_NAMESPACE, OPERAND_NAMESPACE, OPERATOR_NAMESPACE } from '../../src/kube-apiserver/namespaces.ts';
import { hostnameSources } from '../../src/kube-apiserver/rotation/follow-hostnames.ts';
import { rotationUnits } from '../../src/kube-apiserver/rotation/units.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { findBinaries } from './binaries.ts';
import { startControlPlane } from './control-plane.ts';
import { findLibraryGo, passOfLibraryGo, type Report } from './library-go.ts';

const program = findLibraryGo();
const binaries = findBinaries(['etcd', 'kube-apiserver', 'kube-controller-manager']);
const notBuilt = program === undefined && 'library-go was not built by npm run cluster:build';

const HOSTNAMES = {
  'service-network': ['10.217.4.1', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
  'external-load-balancer': ['api.example.com'],
  'internal-load-balancer': ['api-int.example.com'],
} as const;

/** An API, and both sides at work on the twelve chains. */
interface Bench {
  readonly kube: Kube;
  ours(): Promise<void>;
  theirs(): Promise<Report>;
}

const APIS: Record<string, { readonly skip: string | false; readonly start: (t: TestContext) => Promise<Bench> }> = {
  'the embedded API': {
    skip: notBuilt,
    start: async t => {
      const dir = mkdtempSync(join(tmpdir(), 'rotunda-library-go-'));
      const api = await startApi({ dir });
      t.after(async () => {
        await api.close();
        rmSync(dir, { recursive: true, force: true });
      });
      return bench(api.kube, api.kubeconfigPath as string);
    },
  },
  'a real kube-apiserver': {
    skip: notBuilt || ('missing' in binaries && binaries.missing),
    start: async t => {
      assert.ok(!('missing' in binaries));
      const cluster = await startControlPlane(binaries);
      t.after(() => cluster.stop());
      return bench(cluster.kube, cluster.kubeconfig);
    },
  },
};

for (const [name, { skip, start }] of Object.entries(APIS)) {
  describe(`library-go and ours change hands on ${name}`, { skip }, () => {
    it('takes over all chains that ours made; then each rotates what is due, and the other leaves it alone', async t => {
      const { kube, ours, theirs } = await start(t);
      await ours();
      assert.deepEqual(await theirs(), NOTHING);
      await leavesAlone(kube, ours);

      await expire(kube, leafOf('AggregatorProxyClientCert'));
      assert.deepEqual((await theirs()).writes, [put(leafOf('AggregatorProxyClientCert'), 'secrets')]);
      await leavesAlone(kube, ours);

      const { signer, bundle } = chainOf('KubeControllerManagerClient');
      await expire(kube, signer);
      assert.deepEqual((await theirs()).writes, [put(signer, 'secrets'), put(bundle, 'configmaps')]);
      await leavesAlone(kube, ours);
    });

    it('leaves alone all chains that library-go made; then ours rotates what is due, and library-go leaves it alone', async t => {
      const { kube, ours, theirs } = await start(t);
      const { writes, errors } = await theirs();
      assert.deepEqual(errors, []);
      assert.ok(writes.length >= 2 * KUBE_APISERVER_CHAINS.length, `${writes.length} writes`);
      await leavesAlone(kube, ours);
      assert.deepEqual(await theirs(), NOTHING);

      const { signer, bundle } = chainOf('LocalhostServing');
      for (const due of [[leafOf('ServiceNetworkServing')], [signer, bundle]] as const) {
        await expire(kube, due[0]);
        const before = await versions(kube);
        await ours();
        assert.deepEqual(changed(before, await versions(kube)), due.map(placeOf).sort());
        assert.deepEqual(await theirs(), NOTHING);
      }
    });
  });
}

const NOTHING: Report = { writes: [], events: [], errors: [] };

async function bench(kube: Kube, kubeconfig: string): Promise<Bench> {
  for (const name of [MANAGED_NAMESPACE, OPERAND_NAMESPACE, OPERATOR_NAMESPACE])
    await createIfMissing(kube, NAMESPACES, { metadata: { name } });
  const sources = hostnameSources();
  for (const source of Object.keys(HOSTNAMES) as (keyof typeof HOSTNAMES)[]) sources[source].set(HOSTNAMES[source]);
  const units = rotationUnits({ dayMs: days(1), hostnames: sources });
  const rotation = {
    kube,
    objects: liveObjects(kube),
    clock: systemClock,
    keys: systemKeys,
    events: recordingEvents(),
    locks: new ObjectLocks(),
  };
  return {
    kube,
    ours: () => reconcileOnce(units, rotation),
    theirs: () => passOfLibraryGo(program as string, kubeconfig, KUBE_APISERVER_CHAINS, units, hostnamesOf),
  };
}

function hostnamesOf({ target: { creator } }: Chain): readonly string[] {
  if (creator.kind === 'client') return [];
  return typeof creator.hostnames === 'string' ? HOSTNAMES[creator.hostnames] : creator.hostnames;
}

function chainOf(controller: string): Chain {
  const chain = KUBE_APISERVER_CHAINS.find(other => other.controller === controller);
  assert.ok(chain, controller);
  return chain;
}

const leafOf = (controller: string): ObjectName => chainOf(controller).target;
const placeOf = ({ namespace, name }: ObjectName): string => `${namespace}/${name}`;
const put = ({ namespace, name }: ObjectName, plural: string): string =>
  `PUT namespaces/${namespace}/${plural}/${name}`;

/** As if its time had come: both sides go by the annotation. */
async function expire(kube: Kube, { namespace, name }: ObjectName): Promise<void> {
  const body = { metadata: { annotations: { [NOT_AFTER]: '2020-01-01T00:00:00Z' } } };
  await kube.patch(SECRETS, { namespace, name }, { type: 'merge', body });
}

async function leavesAlone(kube: Kube, pass: () => Promise<unknown>): Promise<void> {
  const before = await versions(kube);
  await pass();
  assert.deepEqual(changed(before, await versions(kube)), []);
}

/** The version of every Secret and ConfigMap of the chains. */
async function versions(kube: Kube): Promise<Map<string, string | undefined>> {
  const found = new Map<string, string | undefined>();
  for (const namespace of [MANAGED_NAMESPACE, OPERAND_NAMESPACE, OPERATOR_NAMESPACE]) {
    const objects = [
      ...(await kube.list(SECRETS, { namespace })).items,
      ...(await kube.list(CONFIG_MAPS, { namespace })).items,
    ];
    for (const { metadata } of objects) found.set(`${namespace}/${metadata?.name}`, metadata?.resourceVersion);
  }
  return found;
}

function changed(before: ReadonlyMap<string, unknown>, after: ReadonlyMap<string, unknown>): string[] {
  const places = new Set([...before.keys(), ...after.keys()]);
  return [...places].filter(place => before.get(place) !== after.get(place)).sort();
}
