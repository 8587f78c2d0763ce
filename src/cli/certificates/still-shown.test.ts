import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { NOW } from '../../certrotation/testing.ts';
import { SHOWN, WAIVED } from '../../hand-over/names.ts';
import { HAND_OVER_CONDITION } from '../../hand-over/report.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../../kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../../kube-apiserver/chains.ts';
import { CLUSTER, KUBE_API_SERVERS } from '../../kube-apiserver/resources.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { CONTROL_PLANE_LABELS } from '../../staticpod/nodes.ts';
import { caDigest, encodeReceipts, NODE_RECEIPTS, signingKey } from '../../trust/receipts.ts';
import { HandOverWorld, SIGNER } from '../hand-overs/testing.ts';
import { StillShown } from './still-shown.ts';

const FILE = '/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/kubelet-client/tls.crt';

test('who still shows what a CA has signed that is to go is named; who cannot be seen counts until its operator has seen it (HO-3)', async () => {
  const world = await HandOverWorld.on(new MemoryKube(), new VirtualClock(NOW), 'a');
  await world.force();
  const { kube } = world;
  const [current] = certificatesIn(dataText(await kube.get(SECRETS, SIGNER), TLS_CERT)) as [Certificate];
  const bundle = KUBE_APISERVER_CHAINS.find(({ signer }) => signer.name === SIGNER.name)!.bundle;
  const { data } = await kube.get(CONFIG_MAPS, { namespace: bundle.namespace, name: bundle.name });
  const old = certificatesIn(data?.[BUNDLE_KEY]).filter(({ der }) => !der.equals(current.der));
  assert.equal(old.length, 1);
  const say = async (issuer: Certificate | undefined, more: Record<string, string> = {}) => {
    const receipt = { process: 'kube-apiserver', file: FILE, kind: 'on-use', cas: [] } as const;
    const shows = issuer && signingKey(issuer);
    const annotations = { ...(issuer && { [NODE_RECEIPTS]: encodeReceipts([{ ...receipt, shows }]) }), ...more };
    const node = await kube.get(NODES, { name: 'a' });
    await kube.update(NODES, { ...node, metadata: { ...node.metadata, labels: CONTROL_PLANE_LABELS, annotations } });
  };
  const still = async (removed: readonly Certificate[] = old) =>
    (await StillShown.read(kube, world.rotation.clock.now())).of(removed);
  const who = 'kube-apiserver on a (kubelet-client)';

  await say(old[0]);
  assert.deepEqual(await still(), [`${who}: shows a certificate of ${old[0]!.subject.commonName}`]);
  assert.deepEqual(await still([]), [], 'nobody is looked at for a CA that stays');
  await say(old[0], { [WAIVED]: '2026-01-01T00:00:00Z' });
  assert.deepEqual(await still(), []);
  await say(current);
  assert.deepEqual(await still(), []);

  await say(undefined);
  assert.deepEqual(await still(), [], 'an operator that goes by the clock has never seen anybody');
  const operator = await kube.create(KUBE_API_SERVERS, { metadata: CLUSTER, spec: {} });
  const conditions = [{ type: HAND_OVER_CONDITION, status: 'False' as const }];
  await kube.updateStatus(KUBE_API_SERVERS, { ...operator, status: { conditions } });
  const { [SHOWN]: noted, ...rest } = (await kube.get(SECRETS, SIGNER)).metadata?.annotations ?? {};
  assert.equal(noted, caDigest(current));
  assert.deepEqual(await still(), [], 'its operator has seen it');
  const signer = await kube.get(SECRETS, SIGNER);
  await kube.update(SECRETS, { ...signer, metadata: { ...signer.metadata, annotations: rest } });
  assert.deepEqual(await still(), [`${who}: the agent of its node reports nothing`]);
});
