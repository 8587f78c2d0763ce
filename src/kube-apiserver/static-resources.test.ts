import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { recordingEvents } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import { auditPolicyConfigMap } from './audit-policy.ts';
import { kubeletVersionCondition } from './kubelet-version.ts';
import { OPERAND_NAMESPACE } from './namespaces.ts';
import { STATIC_RESOURCES } from './static-resources.ts';

test('static resources are applied once and are the same the second time', async () => {
  const kube = new MemoryKube();
  const events = recordingEvents();
  for (const [, apply] of STATIC_RESOURCES) await apply({ kube, events });
  const written = events.events.length;
  assert.equal(written, STATIC_RESOURCES.length);
  for (const [, apply] of STATIC_RESOURCES) await apply({ kube, events });
  assert.equal(events.events.length, written);
  const token = await kube.get(SECRETS, { namespace: OPERAND_NAMESPACE, name: 'localhost-recovery-client-token' });
  assert.equal(token.metadata?.annotations?.['kubernetes.io/service-account.name'], 'localhost-recovery-client');
});

test('the syncer reaches the server by the recovery name, with a token and without a client certificate (spec 20, 5.1.9)', async () => {
  const kube = new MemoryKube();
  for (const [, apply] of STATIC_RESOURCES) await apply({ kube, events: recordingEvents() });
  const key = { namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-cert-syncer-kubeconfig' };
  const text = (await kube.get(CONFIG_MAPS, key)).data?.kubeconfig ?? '';
  assert.match(text, /tls-server-name: localhost-recovery/);
  assert.match(text, /tokenFile: .*static-pod-resources\/secrets\/localhost-recovery-client-token\/token/);
  assert.match(
    text,
    /certificate-authority: .*static-pod-resources\/configmaps\/kube-apiserver-server-ca\/ca-bundle.crt/,
  );
  assert.doesNotMatch(text, /client-certificate/);
});

describe('audit policy', () => {
  const levels = (spec: Parameters<typeof auditPolicyConfigMap>[0]) =>
    (
      JSON.parse(auditPolicyConfigMap(spec).data?.['policy.yaml'] ?? '') as {
        rules: { level: string; userGroups?: string[] }[];
      }
    ).rules;

  test('profiles: the default one logs no bodies, none logs those with secrets in them', () => {
    assert.ok(levels({}).every(({ level }) => level !== 'RequestResponse'));
    assert.equal(levels({ profile: 'None' }).at(-1)?.level, 'None');
    for (const profile of ['WriteRequestBodies', 'AllRequestBodies']) {
      const rules = levels({ profile });
      const secret = rules.findIndex(rule => JSON.stringify(rule).includes('"secrets"'));
      const body = rules.findIndex(({ level }) => level === 'RequestResponse');
      assert.ok(secret >= 0 && secret < body, profile);
    }
  });

  test('rules for groups come before the profile; an unknown profile is refused', () => {
    const rules = levels({ profile: 'Default', customRules: [{ group: 'auditors', profile: 'None' }] });
    assert.deepEqual(rules.at(-2), { level: 'None', userGroups: ['auditors'] });
    assert.throws(
      () => auditPolicyConfigMap({ profile: 'Everything' }),
      /expected an audit profile of Default.*"Everything"/,
    );
  });
});

describe('kubelet versions', () => {
  const node = (name: string, kubeletVersion: string): Node => ({
    metadata: { name },
    status: { nodeInfo: { kubeletVersion } as never },
  });
  for (const [versions, status, reason] of [
    [['v1.29.4', 'v1.29.1'], 'True', 'KubeletMinorVersionsSynced'],
    [['v1.29.4', 'v1.27.1'], 'True', 'KubeletMinorVersionsSupportedNextUpgrade'],
    [['v1.29.4', 'v1.26.1'], 'False', 'KubeletMinorVersionUnsupportedNextUpgrade'],
    [['v1.25.4'], 'False', 'KubeletMinorVersionUnsupported'],
    [['v1.30.0-rc.1+abc'], 'False', 'KubeletMinorVersionAhead'],
    [['junk'], 'False', 'KubeletVersionUnknown'],
  ] as [string[], string, string][]) {
    test(`${versions.join(', ')} under 1.29: ${reason}`, () => {
      const found = kubeletVersionCondition(
        '1.29.4',
        versions.map((version, index) => node(`n${index}`, version)),
      );
      assert.deepEqual([found.status, found.reason], [status, reason]);
    });
  }
});
