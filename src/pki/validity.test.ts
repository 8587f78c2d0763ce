import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { CertificateAndKey } from './authority.ts';
import { isPkiError, type PkiErrorCode } from './error.ts';
import { issueClient, issueServing, issueSigner } from './issue.ts';
import type { Keys } from './keys.ts';
import { at, DAY_MS, ISSUE, KINDS, NOW, own, sampleSigner } from './test-data.ts';

const rejects = (promise: Promise<unknown>, code: PkiErrorCode, message = /./) =>
  assert.rejects(promise, error => isPkiError(error, code) && message.test(error.message));
const { keys } = ISSUE;

let signer: CertificateAndKey;
before(async () => {
  signer = await sampleSigner();
});

describe('5.2 validity', () => {
  it('V-1 from one second before now, cut to whole seconds', async () => {
    const now = new Date('2024-01-01T00:00:00.900Z');
    const certificate = own(await issueSigner({ ...ISSUE, now, lifetimeMs: 3_600_000, commonName: 'x' }));
    assert.equal(certificate.notBefore.toISOString(), '2023-12-31T23:59:59.000Z');
    assert.equal(certificate.notAfter.toISOString(), '2024-01-01T01:00:00.000Z');
  });
  it('V-2 a signer lives as long as asked', async () => {
    const certificate = own(await issueSigner({ ...ISSUE, lifetimeMs: 3650 * DAY_MS, commonName: 'x' }));
    assert.equal(certificate.notAfter.getTime(), NOW.getTime() + 3650 * DAY_MS);
  });
  for (const kind of ['intermediate', 'serving', 'client', 'peer']) {
    it(`V-3 ${kind}: as long as asked, at most as long as the signer`, async () => {
      assert.deepEqual(own(await KINDS[kind]!(signer)).notAfter, new Date(NOW.getTime() + DAY_MS));
      assert.deepEqual(own(await KINDS[kind]!(signer, { lifetimeMs: 365 * DAY_MS })).notAfter, own(signer).notAfter);
    });
    it(`V-4 ${kind}: fails with an expired signer`, async () => {
      for (const now of [own(signer).notAfter, new Date(own(signer).notAfter.getTime() + 1)]) {
        await rejects(
          KINDS[kind]!(signer, { now }),
          'SIGNER_EXPIRED',
          /"ns_signer@1705276800" expired at 2024-02-14T00:00:00.000Z/,
        );
      }
      const lastMoment = new Date(own(signer).notAfter.getTime() - 1);
      assert.deepEqual(own(await KINDS[kind]!(signer, { now: lastMoment })).notAfter, own(signer).notAfter);
    });
    it(`X-2 ${kind}: fails with a signer that is no CA`, async () => {
      await rejects(KINDS[kind]!(await KINDS['serving']!(signer)), 'NOT_A_CA');
    });
  }
  it('V-3, 14.9 the end is settled before a key is made: where it fails, none is', async () => {
    const never: Keys = { ...keys, generate: () => assert.fail('a key was made') };
    await rejects(
      issueServing({ ...ISSUE, keys: never, signer, now: at(60 * 86_400), hostnames: ['x'] }),
      'SIGNER_EXPIRED',
    );
    await rejects(issueServing({ ...ISSUE, keys: never, signer, hostnames: [] }), 'NO_HOSTNAMES');
  });
  for (const lifetimeMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 9000 * 365 * DAY_MS]) {
    it(`X-4 a lifetime of ${lifetimeMs} ms is refused`, () =>
      rejects(issueSigner({ ...ISSUE, lifetimeMs, commonName: 'x' }), 'VALIDITY_INVALID'));
  }
  it('V-3 a leaf never outlives its signer', async () => {
    const ms = fc.integer({ min: 1, max: 4_000_000 });
    await fc.assert(
      fc.asyncProperty(ms, ms, ms, fc.boolean(), async (signerLifeMs, ageMs, lifetimeMs, isClient) => {
        const ca = await sampleSigner({ lifetimeMs: signerLifeMs, keys });
        const now = new Date(NOW.getTime() + ageMs);
        const options = { ...ISSUE, now, lifetimeMs, signer: ca };
        const leaf = isClient
          ? issueClient({ ...options, user: { name: 'u' } })
          : issueServing({ ...options, hostnames: ['h'] });
        if (own(ca).notAfter <= now) return rejects(leaf, 'SIGNER_EXPIRED');
        const { notBefore, notAfter } = own(await leaf);
        assert.ok(notAfter <= own(ca).notAfter);
        assert.ok(notAfter.getTime() <= now.getTime() + lifetimeMs);
        assert.ok(notBefore < notAfter && notBefore < now);
        assert.equal(notBefore.getUTCMilliseconds() + notAfter.getUTCMilliseconds(), 0);
      }),
      { numRuns: 60 },
    );
  });
});
