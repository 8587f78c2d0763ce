import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLog } from '../controller/log.ts';
import { recordingEvents } from '../kube/events.ts';
import { getIfPresent } from '../kube/get.ts';
import { listAll } from '../kube/list.ts';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS, NODES } from '../kube/resource.ts';
import { liveObjects } from '../staticpod/objects.ts';
import { StaticPodOperator } from '../staticpod/operator.ts';
import { auditPolicyReconcile } from './audit-policy.ts';
import { connectivityCheckReconcile } from './connectivity/checks.ts';
import { OPERAND_NAMESPACE } from './namespaces.ts';
import {
  API_SERVERS,
  type APIServer,
  CLUSTER,
  CONNECTIVITY_CHECKS,
  INFRASTRUCTURES,
  KUBE_API_SERVERS,
} from './resources.ts';
import { EXTERNAL_URL, testClock } from './testing.ts';

const POLICY = { namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-audit-policies' };

describe('only Managed has them work; a value that nobody knows is told', () => {
  for (const [state, works, told] of [
    ['Managed', true, []],
    ['Unmanaged', false, []],
    ['Removed', false, []],
    ['Sideways', false, ['ManagementStateUnknown']],
  ] as const) {
    test(state, async () => {
      const audit = await cluster(state, {});
      await audit.reconcilePolicy();
      assert.equal((await audit.policy()) !== undefined, works);
      const unknown = audit.events.events.map(({ reason }) => reason).filter(reason => /State/.test(reason));
      assert.deepEqual(unknown, told);

      const checks = await cluster(state, {});
      await checks.reconcileChecks();
      assert.equal((await listAll(checks.kube, CONNECTIVITY_CHECKS, {})).items.length > 0, works);
    });
  }
});

test('an audit profile that does not exist, or no APIServer: told with reason Error, the policy stays', async () => {
  const unknown = await cluster('Managed', { spec: { audit: { profile: 'Everything' } } });
  await assert.rejects(unknown.reconcilePolicy(), /found "Everything"/);
  assert.deepEqual(await unknown.condition(), ['True', 'Error']);
  assert.equal(await unknown.policy(), undefined);

  const missing = await cluster('Managed', undefined);
  await assert.rejects(missing.reconcilePolicy(), /apiservers.config.openshift.io\/cluster not found/);
  assert.deepEqual(await missing.condition(), ['True', 'Error']);
  assert.equal(await missing.policy(), undefined);

  await missing.kube.create(API_SERVERS, { metadata: CLUSTER });
  await missing.reconcilePolicy();
  assert.equal((await missing.condition())?.[0], 'False');
});

async function cluster(managementState: string, apiServer: APIServer | undefined) {
  const [kube, clock, events] = [new MemoryKube(), testClock(), recordingEvents()];
  await kube.create(KUBE_API_SERVERS, { metadata: CLUSTER, spec: { managementState } });
  if (apiServer !== undefined) await kube.create(API_SERVERS, { ...apiServer, metadata: CLUSTER });
  await kube.create(INFRASTRUCTURES, { metadata: CLUSTER, status: { apiServerURL: EXTERNAL_URL } });
  await kube.create(NODES, { metadata: { name: 'master-0', labels: { 'node-role.kubernetes.io/master': '' } } });
  const operator = new StaticPodOperator({ kube, resource: KUBE_API_SERVERS, clock });
  const cached = liveObjects(kube);
  const context = { clock, events, signal: new AbortController().signal, log: silentLog, enqueue() {} };
  return {
    kube,
    events,
    reconcilePolicy: async () => auditPolicyReconcile({ kube, operator, cached })('', context),
    reconcileChecks: async () => connectivityCheckReconcile({ kube, cached })('', context),
    policy: () => getIfPresent(kube, CONFIG_MAPS, POLICY),
    async condition() {
      const { status } = await kube.get(KUBE_API_SERVERS, CLUSTER);
      const found = status?.conditions?.find(({ type }) => type === 'AuditPolicyDegraded');
      return found && [found.status, found.reason];
    },
  };
}
