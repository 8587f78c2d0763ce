import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withAnnotations } from '../../certrotation/secret.ts';
import { minutes } from '../../kube/duration.ts';
import { issueSigner } from '../../pki/issue.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { certificatesOfClusterInfo, withCertificates } from './cluster-info.ts';
import { joinNotes, joinsHoldUp, joinTokens, notedTokens, withoutNote } from './join-tokens.ts';
import { JOIN_TOKENS } from './names.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const keys = seededKeys('joining');
const make = async (commonName: string) =>
  (await issueSigner({ commonName, lifetimeMs: 1e9, now: NOW, keys, algorithm: 'P-256' })).chain[0]!;
const [OLD, NEXT] = await Promise.all([make('kubernetes'), make('kubernetes@1')]);

// As kubeadm writes it.
const KUBECONFIG = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${Buffer.from(encodeCertificates([OLD])).toString('base64')}
    server: https://10.0.0.1:6443
  name: ""
contexts: null
current-context: ""
kind: Config
preferences: {}
users: null
`;
const info = (data: Record<string, string> = {}) => ({
  metadata: { name: 'cluster-info' },
  data: { kubeconfig: KUBECONFIG, ...data },
});

test('nodes that join are told of both generations, and of the server as before', () => {
  const both = withCertificates(info({ 'jws-kubeconfig-abcdef': 'x' }), [OLD, NEXT], NOW);
  assert.deepEqual(
    certificatesOfClusterInfo(both).map(({ subject }) => subject.commonName),
    ['kubernetes', 'kubernetes@1'],
  );
  assert.match(both?.data?.kubeconfig ?? '', /server: https:\/\/10\.0\.0\.1:6443/);
  for (const order of [
    [OLD, NEXT],
    [NEXT, OLD],
  ])
    assert.equal(withCertificates(both ?? {}, order, NOW), both);
  const same = info();
  assert.equal(withCertificates(same, [OLD], NOW), same);
});

test('signatures over another text go, and their tokens are known until there are others', () => {
  const both = withCertificates(info({ 'jws-kubeconfig-abcdef': 'x', other: 'y' }), [OLD, NEXT], NOW);
  assert.deepEqual(Object.keys(both?.data ?? {}), ['kubeconfig', 'other']);
  const after = (ms: number) => new Date(NOW.getTime() + ms);
  assert.deepEqual(joinTokens(both, after(minutes(9))), ['abcdef']);
  assert.deepEqual(joinTokens(both, after(minutes(10))), []);
  // Changed once more before anybody has signed.
  const again = both && withCertificates(both, [NEXT], after(minutes(9)));
  assert.deepEqual(joinTokens(again, after(minutes(18))), ['abcdef']);
  const signed = { ...again, data: { ...again?.data, 'jws-kubeconfig-newone': 'x' } };
  assert.deepEqual(joinTokens(signed, after(minutes(10))), ['newone']);
  // From then on a token without a signature has ended.
  assert.equal(again && withoutNote(again), again);
  const { 'jws-kubeconfig-newone': _, ...unsigned } = signed.data;
  assert.deepEqual(joinTokens({ ...withoutNote(signed), data: unsigned }, after(minutes(9))), []);
});

test('what is no kubeconfig is left alone', () => {
  for (const kubeconfig of ['', '{', 'a: 1', 'clusters: []', 'clusters: [{name: x}]']) {
    assert.equal(withCertificates({ data: { kubeconfig } }, [NEXT], NOW), undefined);
    assert.deepEqual(certificatesOfClusterInfo({ data: { kubeconfig } }), []);
  }
});

test('the CA before stays until the tokens that pin it are over, and two hours more', () => {
  const before = info({ 'jws-kubeconfig-abcdef': 'x', 'jws-kubeconfig-012345': 'x', 'jws-kubeconfig-BAD': 'x' });
  assert.deepEqual(joinTokens(before, NOW), ['012345', 'abcdef']);
  const signer = withAnnotations({ metadata: { name: 'ca' } }, { [JOIN_TOKENS]: notedTokens(before, NOW) });
  assert.match(joinsHoldUp(signer, before, NOW) ?? '', /012345, abcdef/);
  // A token that was made since pins the new CA too.
  const later = info({ 'jws-kubeconfig-abcdef': 'x', 'jws-kubeconfig-newone': 'x' });
  assert.match(joinsHoldUp(signer, later, NOW) ?? '', /good: abcdef;/);
  assert.deepEqual(joinNotes(signer, later, NOW), {});
  const gone = info({ 'jws-kubeconfig-newone': 'x' });
  assert.ok(joinsHoldUp(signer, gone, NOW));
  const noted = withAnnotations(signer, joinNotes(signer, gone, NOW));
  assert.match(joinsHoldUp(noted, gone, NOW) ?? '', /until 2026-01-01T02:00:00Z/);
  assert.equal(joinsHoldUp(noted, gone, new Date('2026-01-01T02:00:00Z')), undefined);
  assert.equal(joinsHoldUp({ metadata: { name: 'ca' } }, later, NOW), undefined);
});
