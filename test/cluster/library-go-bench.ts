/** library-go's rotation controllers and ours at work on the same chains, in turn. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { startApi } from '../../src/api/api.ts';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import type { RotationUnit } from '../../src/certrotation/config.ts';
import { liveObjects, type Rotation } from '../../src/certrotation/ensure.ts';
import { ObjectLocks } from '../../src/certrotation/locks.ts';
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
import { findLibraryGo, passOfLibraryGo, type Report } from './library-go.ts';

const program = findLibraryGo();
export const notBuilt = program === undefined && 'library-go was not built by npm run cluster:build';

const NAMESPACES_OF_CHAINS = [MANAGED_NAMESPACE, OPERAND_NAMESPACE, OPERATOR_NAMESPACE];

const HOSTNAMES = {
  'service-network': ['10.217.4.1', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'],
  'external-load-balancer': ['api.example.com'],
  'internal-load-balancer': ['api-int.example.com'],
} as const;

/** An API, and what both sides need to work on the twelve chains. */
export interface Bench {
  readonly kube: Kube;
  readonly units: readonly RotationUnit[];
  readonly rotation: Rotation;
  theirs(): Promise<Report>;
}

/** On an embedded API of its own. */
export async function embeddedBench(t: TestContext): Promise<Bench> {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-library-go-'));
  const api = await startApi({ dir });
  t.after(async () => {
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });
  return bench(api.kube, api.kubeconfigPath as string);
}

export const NOTHING: Report = { writes: [], events: [], errors: [] };

export async function bench(kube: Kube, kubeconfig: string): Promise<Bench> {
  for (const name of NAMESPACES_OF_CHAINS) await createIfMissing(kube, NAMESPACES, { metadata: { name } });
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
    units,
    rotation,
    theirs: () => passOfLibraryGo(program as string, kubeconfig, KUBE_APISERVER_CHAINS, units, hostnamesOf),
  };
}

function hostnamesOf({ target: { creator } }: Chain): readonly string[] {
  if (creator.kind === 'client') return [];
  return typeof creator.hostnames === 'string' ? HOSTNAMES[creator.hostnames] : creator.hostnames;
}

export function chainOf(controller: string): Chain {
  const chain = KUBE_APISERVER_CHAINS.find(other => other.controller === controller);
  assert.ok(chain, controller);
  return chain;
}

export const leafOf = (controller: string): ObjectName => chainOf(controller).target;
export const placeOf = ({ namespace, name }: ObjectName): string => `${namespace}/${name}`;

/** As if its time had come: both sides go by the annotation. */
export async function expire(kube: Kube, { namespace, name }: ObjectName): Promise<void> {
  const body = { metadata: { annotations: { [NOT_AFTER]: '2020-01-01T00:00:00Z' } } };
  await kube.patch(SECRETS, { namespace, name }, { type: 'merge', body });
}

/** The version of every Secret and ConfigMap of the chains. */
export async function versions(kube: Kube): Promise<Map<string, string | undefined>> {
  const found = new Map<string, string | undefined>();
  for (const namespace of NAMESPACES_OF_CHAINS) {
    const objects = [
      ...(await kube.list(SECRETS, { namespace })).items,
      ...(await kube.list(CONFIG_MAPS, { namespace })).items,
    ];
    for (const { metadata } of objects) found.set(`${namespace}/${metadata?.name}`, metadata?.resourceVersion);
  }
  return found;
}

export function changed(before: ReadonlyMap<string, unknown>, after: ReadonlyMap<string, unknown>): string[] {
  const places = new Set([...before.keys(), ...after.keys()]);
  return [...places].filter(place => before.get(place) !== after.get(place)).sort();
}
