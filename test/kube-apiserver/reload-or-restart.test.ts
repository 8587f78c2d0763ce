/**
 * The table of spec 20, section 3, on a node: every object is changed at its source, and what the pod does is compared with what
 * `effectOfChange` says. The node is followed through all revisions together: one after the other would take seconds each.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import { CONFIG_MAPS, EVENTS, SECRETS } from '../../src/kube/resource.ts';
import {
  CERTS_MOUNT,
  hostDirectoryOf,
  mountedDirectoryOf,
  OPERAND_OBJECTS,
  type OperandObject,
  operandRef,
} from '../../src/kube-apiserver/operand-objects.ts';
import { kubeApiserverTrust } from '../../src/kube-apiserver/trust.ts';
import type { LocalNode } from '../../src/local/node.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import { effectOfChange, verdictOf } from '../../src/trust/effect.ts';
import { CHANGES, UNCHANGED, USER_NAME } from './changes.ts';
import {
  ask,
  eventually,
  fileOn,
  loadedOn,
  OPERAND_NAMESPACE,
  sha256,
  startTestCluster,
  statusOf,
  unwellConditions,
} from './cluster.ts';

const SIGNING_KEY = 'service-account-signing-key';
const graph = kubeApiserverTrust();
const rows = OPERAND_OBJECTS.filter(({ name }) => name in CHANGES);
const verdict = (row: OperandObject) => verdictOf(effectOfChange(graph, operandRef(row)).slice(0, 1));
const restarts = rows.filter(row => verdict(row) === 'restart');
const reloads = rows.filter(row => verdict(row) === 'reload');
const filesOnly = rows.filter(row => verdict(row) === 'file-only');

let cluster: Awaited<ReturnType<typeof startTestCluster>>;
let node: LocalNode;
before(async () => {
  cluster = await startTestCluster({ controlPlane: 1 });
  [node] = cluster.controlPlane as [LocalNode];
  await cluster.ready();
});
after(() => cluster.stop());

test('every object of the pod is changed here, or it is said why not', () => {
  const others = OPERAND_OBJECTS.filter(({ name }) => !(name in CHANGES) && !(name in UNCHANGED));
  assert.deepEqual(
    others.map(({ name }) => name),
    // Nine more certificates of the user; the first stands for all.
    Array.from({ length: 9 }, (_, index) => `user-serving-cert-00${index + 1}`),
  );
});

describe('a restart', () => {
  let pid: number;
  let first: number;
  before(async () => {
    ({ pid } = await loadedOn(node));
    first = (await statusOf(cluster)).latestAvailableRevision ?? 0;
  });

  for (const row of restarts) {
    test(`${row.kind} ${row.name}: a new revision that holds the change`, async () => {
      const { latestAvailableRevision: old = 0 } = await statusOf(cluster);
      const data = JSON.stringify((await read(row))?.data);
      await CHANGES[row.name]?.(cluster);
      await eventually(`a revision with the new ${row.name}`, async () => {
        const { latestAvailableRevision: next = 0 } = await statusOf(cluster);
        const changed = JSON.stringify((await read(row))?.data);
        const held = JSON.stringify((await read({ ...row, name: `${row.name}-${next}` }))?.data);
        return next > old && changed !== data && held === changed;
      });
    });
  }

  test('the node gets them all with new processes', async () => {
    await cluster.ready();
    const { latestAvailableRevision = 0 } = await statusOf(cluster);
    assert.ok(latestAvailableRevision > first, `revision ${latestAvailableRevision}`);
    assert.notEqual((await loadedOn(node)).pid, pid);
    // The manifest is not written as it is: the installer fills it in.
    const copied = restarts.filter(({ name }) => name !== 'kube-apiserver-pod');
    for (const row of copied) await eventually(`files of ${row.name}`, async () => isOnDisk(row));
    await eventually('all conditions are well', async () => (await unwellConditions(cluster)).length === 0);
  });
});

test('every revision can be read about in the events, however fast they came', async () => {
  const { latestAvailableRevision = 0 } = await statusOf(cluster);
  await eventually('an event about each of them', async () => {
    const { items } = await cluster.kube.list(EVENTS, {});
    const told = items.filter(({ reason }) => reason === 'RevisionTriggered').map(({ message = '' }) => message);
    const revisions = Array.from({ length: latestAvailableRevision }, (_, index) => index + 1);
    return revisions.every(revision => told.some(message => message.startsWith(`new revision ${revision} triggered`)));
  });
});

describe('no restart', () => {
  let pid: number;
  let revision: number | undefined;
  const objects = new Map<string, string>();
  before(async () => {
    ({ pid } = await loadedOn(node));
    revision = (await statusOf(cluster)).latestAvailableRevision;
    for (const row of [...reloads, ...filesOnly]) {
      objects.set(row.name, JSON.stringify((await read(row))?.data));
      await CHANGES[row.name]?.(cluster);
    }
  });

  for (const row of [...reloads, ...filesOnly]) {
    test(`${row.kind} ${row.name}: ${verdict(row)}`, async () => {
      const object = await eventually(`${row.name} changes`, async () => {
        const found = await read(row);
        return JSON.stringify(found?.data) !== objects.get(row.name) && found;
      });
      await eventually(`files of ${row.name}`, async () => isOnDisk(row));
      if (verdict(row) === 'reload' && row.name !== 'check-endpoints-client-cert-key') {
        const wanted = digestsIn(object);
        await eventually(`${row.name} is loaded`, async () => {
          const directory = `${mountedDirectoryOf(row)}/`.replace(CERTS_MOUNT, '');
          const inputs = (await loadedOn(node)).inputs.filter(({ paths }) =>
            paths.some(path => path.includes(directory)),
          );
          return (
            inputs.length > 0 && inputs.every(input => input.certificates?.join() === wanted.join() && !input.isStale)
          );
        });
      }
    });
  }

  test('Secret bound-service-account-signing-key: file-only, promoted after its public key was rolled out', async () => {
    const row = OPERAND_OBJECTS.find(({ name }) => name === 'bound-service-account-signing-key') as OperandObject;
    assert.equal(verdict(row), 'file-only');
    await eventually('the server signs with the old key', async () => (await signingKey())?.isStale);
    await eventually('the new key is on the disk', async () => isOnDisk(row));
  });

  test('the user sees the new certificate', async () => {
    const key = { namespace: OPERAND_NAMESPACE, name: 'user-serving-cert-000' };
    const secret = await cluster.kube.get(SECRETS, key);
    const { peer } = await ask(node, '/readyz', { servername: USER_NAME });
    assert.equal(sha256(peer), digestsIn(secret)[0]);
  });

  test('all of that with the same process and the same revision', async () => {
    assert.equal((await loadedOn(node)).pid, pid);
    assert.equal((await statusOf(cluster)).latestAvailableRevision, revision);
    assert.deepEqual(await unwellConditions(cluster), []);
  });
});

test('a cluster that was stopped goes on from where it was', async () => {
  const { latestAvailableRevision } = await statusOf(cluster);
  const { pid, inputs } = await loadedOn(node);
  const { url } = cluster.api;
  await cluster.close();
  await assert.rejects(loadedOn(node), 'nobody serves any more');
  cluster = await startTestCluster({ dir: cluster.dir, controlPlane: 1 });
  [node] = cluster.controlPlane as [LocalNode];
  const again = await eventually('the server is back', () => loadedOn(node));
  assert.notEqual(again.pid, pid);
  const digests = (all: typeof inputs) =>
    all.filter(({ name }) => name !== SIGNING_KEY).map(({ name, certificates }) => ({ name, certificates }));
  assert.deepEqual(digests(again.inputs), digests(inputs));
  assert.equal((await signingKey())?.isStale, false, 'what is only read at the start has been taken by now');
  assert.equal((await statusOf(cluster)).latestAvailableRevision, latestAvailableRevision);
  assert.equal(cluster.api.url, url);
});

async function signingKey() {
  return (await loadedOn(node)).inputs.find(({ name }) => name === SIGNING_KEY);
}

function read({ kind, name }: OperandObject): Promise<ConfigMap | Secret | undefined> {
  const key = { namespace: OPERAND_NAMESPACE, name };
  return kind === 'Secret' ? getIfPresent(cluster.kube, SECRETS, key) : getIfPresent(cluster.kube, CONFIG_MAPS, key);
}

/** Whether the files on the node are those of the object. */
async function isOnDisk(row: OperandObject): Promise<boolean> {
  const { latestAvailableRevision } = await statusOf(cluster);
  const directory = hostDirectoryOf(row).replace('<REVISION>', String(latestAvailableRevision));
  return Object.entries((await read(row))?.data ?? {}).every(
    ([file, value]) => fileOn(node, `${directory}/${file}`) === decoded(row.kind, value),
  );
}

function decoded(kind: OperandObject['kind'], value: string): string {
  return kind === 'Secret' ? Buffer.from(value, 'base64').toString() : value;
}

/** SHA-256 of the certificates in an object. */
function digestsIn(object: ConfigMap | Secret): string[] {
  const { data = {} } = object;
  const text =
    data['tls.crt'] === undefined ? data['ca-bundle.crt'] : Buffer.from(data['tls.crt'], 'base64').toString();
  return readCertificates(text ?? '').certificates.map(({ der }) => sha256(der));
}
