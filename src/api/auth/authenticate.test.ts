import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { VirtualClock } from '../../kube/clock.ts';
import { days, seconds } from '../../kube/duration.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { issueClient, issueForPublicKey, issueServing, issueSigner } from '../../pki/issue.ts';
import { seededKeys } from '../../pki/keys.ts';
import { createAuthenticator } from './authenticate.ts';
import { createCertificateAuthenticator } from './certificate.ts';
import { createStaticTokens } from './token.ts';

const START = '2026-06-01T00:00:00Z';

describe('client certificates', () => {
  const keys = seededKeys('client certificates');
  const clock = new VirtualClock(START);
  const context = { keys, now: new Date(START), algorithm: 'P-256' } as const;
  let ca: CertificateAndKey;
  let otherCa: CertificateAndKey;
  let admin: CertificateAndKey;
  before(async () => {
    ca = await issueSigner({ ...context, commonName: 'ca', lifetimeMs: days(10) });
    otherCa = await issueSigner({ ...context, commonName: 'ca', lifetimeMs: days(10) });
    admin = await issueClient({
      ...context,
      signer: ca,
      user: { name: 'admin', groups: ['dev', 'ops'] },
      lifetimeMs: days(1),
    });
  });
  const chainOf = (pair: CertificateAndKey) => pair.chain.map(certificate => certificate.der);

  it('common name and organizations are name and groups', () => {
    const roots = [...ca.chain];
    const answer = createCertificateAuthenticator({ clientCas: () => roots, clock }).authenticateChain(chainOf(admin));
    assert.ok(answer.ok);
    assert.equal(answer.user.name, 'admin');
    assert.deepEqual([...answer.user.groups].sort(), ['dev', 'ops', 'system:authenticated']);
  });

  it('follows the bundle as it changes, and the clock', async () => {
    let roots: readonly Certificate[] = otherCa.chain;
    const at = new VirtualClock(START);
    const authenticator = createCertificateAuthenticator({ clientCas: () => roots, clock: at });
    const holds = () => authenticator.authenticateChain(chainOf(admin)).ok;
    assert.equal(holds(), false);
    roots = [...otherCa.chain, ...ca.chain];
    assert.equal(holds(), true);
    assert.equal(holds(), true);
    roots = otherCa.chain;
    assert.equal(holds(), false);
    roots = ca.chain;
    assert.equal(holds(), true);
    await at.advance(days(1) + seconds(1));
    assert.equal(holds(), false);
  });

  it('takes nobody for somebody it has seen before', async () => {
    const at = new VirtualClock(START);
    const authenticator = createCertificateAuthenticator({ clientCas: () => ca.chain, clock: at });
    const nameOf = (pair: CertificateAndKey) => {
      const answer = authenticator.authenticateChain(chainOf(pair));
      return answer.ok ? answer.user.name : answer.why;
    };
    const client = (name: string, signer: CertificateAndKey) =>
      issueClient({ ...context, signer, user: { name, groups: [] }, lifetimeMs: days(1) });
    assert.equal(nameOf(admin), 'admin');
    assert.equal(nameOf(await client('bob', ca)), 'bob');
    assert.match(nameOf(await client('eve', otherCa)), /does not verify/);
    at.jumpTo(new Date(new Date(START).getTime() - days(1)));
    assert.match(nameOf(admin), /does not verify/, 'before it begins');
  });

  it('refuses serving certificates, garbage, and certificates without a name', async () => {
    const authenticator = createCertificateAuthenticator({ clientCas: () => ca.chain, clock });
    const serving = await issueServing({ ...context, signer: ca, hostnames: ['localhost'], lifetimeMs: days(1) });
    const whyNot = (chain: Buffer[]) => {
      const answer = authenticator.authenticateChain(chain);
      return answer.ok ? '' : answer.why;
    };
    const nameless = await issueForPublicKey({
      ...context,
      signer: ca,
      publicKey: createPublicKey(admin.key),
      subject: { commonName: '', organizations: ['system:masters'] },
      extKeyUsages: ['clientAuth'],
      lifetimeMs: days(1),
    });
    assert.match(whyNot([nameless.der]), /has no common name/);
    assert.match(whyNot(chainOf(serving)), /does not verify/);
    assert.match(whyNot([Buffer.from('garbage')]), /not a certificate/);
    assert.match(whyNot([]), /no certificate/);
    assert.match(whyNot(Array.from({ length: 11 }, () => Buffer.alloc(1))), /more than 10/);
  });

  describe('all credentials together', () => {
    const create = () =>
      createAuthenticator({
        certificates: createCertificateAuthenticator({ clientCas: () => ca.chain, clock }),
        tokens: [
          createStaticTokens([{ token: 'sesame', user: { name: 'token-user', uid: '7', groups: [], extra: {} } }]),
        ],
        apiAudiences: ['api'],
      });
    const bad = [Buffer.from('garbage')];
    const cases: [
      rule: string,
      chain: 'good' | 'bad' | 'none',
      authorization: string | undefined,
      path: string,
      expected: string,
    ][] = [
      ['certificate', 'good', undefined, '/api', 'admin'],
      ['certificate before token', 'good', 'Bearer sesame', '/api', 'admin'],
      ['token', 'none', 'Bearer sesame', '/api', 'token-user'],
      ['scheme in any case', 'none', 'bEARER  sesame', '/api', 'token-user'],
      ['token when the certificate is bad', 'bad', 'Bearer sesame', '/api', 'token-user'],
      ['bad certificate', 'bad', undefined, '/api', '401'],
      ['bad token', 'none', 'Bearer nope', '/api', '401'],
      ['other scheme', 'none', 'Basic c2VzYW1l', '/api', '401'],
      ['nothing', 'none', undefined, '/api', '401'],
      ['nothing, for health', 'none', undefined, '/readyz', 'system:anonymous'],
      ['nothing, for one check', 'none', undefined, '/readyz/etcd', '401'],
      ['bad certificate, for health', 'bad', undefined, '/readyz', '401'],
      ['bad token, for health', 'none', 'Bearer nope', '/readyz', '401'],
    ];
    for (const [rule, chain, authorization, path, expected] of cases) {
      it(rule, () => {
        const peerChain = chain === 'good' ? chainOf(admin) : chain === 'bad' ? bad : undefined;
        const answer = create().authenticate({ peerChain, authorization, path });
        assert.equal(answer.ok ? answer.user.name : '401', expected);
        if (!answer.ok) assert.doesNotMatch(answer.why, /nope|sesame/);
      });
    }

    it('empty static tokens are a mistake', () => {
      assert.throws(
        () => createStaticTokens([{ token: '', user: { name: 'x', uid: '', groups: [], extra: {} } }]),
        TypeError,
      );
    });
  });
});
