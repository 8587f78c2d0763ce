import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { CertificateAndKey } from './authority.ts';
import { type Certificate, parseCertificate } from './certificate.ts';
import { type ChainFailure, type ChainQuestion, verifyChain } from './chain.ts';
import {
  contextConstructed,
  element,
  integer,
  namedBits,
  octetString,
  oid,
  sequence,
  TRUE,
  time,
} from './der-write.ts';
import { issueClient, issueIntermediate, issueServing, issueSigner } from './issue.ts';
import { seededKeys } from './keys.ts';
import { MAX_CHAIN_LENGTH } from './limits.ts';
import { at, DAY_MS, fixture, handmade, NOW, own, sampleHierarchy, sampleServing, sampleSigner } from './test-data.ts';

const keys = seededKeys('chain');
const base = { keys, now: NOW, lifetimeMs: DAY_MS, algorithm: 'P-256' as const };
const extension = (type: string, value: Buffer) => sequence(oid(type), TRUE, octetString(value));
const ca = (...content: Buffer[]) => extension('2.5.29.19', sequence(TRUE, ...content));

function fails(question: ChainQuestion, code: ChainFailure): void {
  const answer = verifyChain(question);
  assert.equal(answer.ok ? 'verified' : answer.code, code, answer.ok ? '' : answer.reason);
}

function verifies(question: ChainQuestion, length: number): void {
  const answer = verifyChain(question);
  assert.ok(answer.ok, answer.ok ? '' : answer.reason);
  assert.equal(answer.chain.length, length);
  assert.equal(answer.chain[0], question.leaf);
}

describe('building and verifying chains', () => {
  let root: Certificate, bravo: Certificate, delta: Certificate, leaf: Certificate;
  let hierarchy: Awaited<ReturnType<typeof sampleHierarchy>>;
  before(async () => {
    hierarchy = await sampleHierarchy(['localhost', 'www.example.com', '127.0.0.1', '*.apps.example.com']);
    root = own(hierarchy.root);
    bravo = own(hierarchy.bravo);
    delta = own(hierarchy.delta);
    leaf = own(hierarchy.leaf);
  });

  it('root, two intermediates, leaf; intermediates in any order', () => {
    verifies({ leaf, intermediates: [delta, bravo], roots: [root], now: NOW }, 4);
    verifies({ leaf, intermediates: [bravo, delta], roots: [root], now: NOW }, 4);
  });
  it('every trusted certificate is an anchor, also an intermediate or the leaf', () => {
    verifies({ leaf, roots: [leaf], now: NOW }, 1);
    verifies({ leaf, roots: [delta], now: NOW }, 2);
    verifies({ leaf, roots: [delta, bravo], now: NOW }, 2);
    verifies({ leaf, roots: [delta, bravo, root], now: NOW }, 2);
    verifies({ leaf, intermediates: [delta], roots: [bravo], now: NOW }, 3);
  });
  it('nothing trusted, or nothing that leads there', () => {
    fails({ leaf, roots: [], now: NOW }, 'UNKNOWN_AUTHORITY');
    fails({ leaf, roots: [root], now: NOW }, 'UNKNOWN_AUTHORITY');
    fails({ leaf, intermediates: [delta, bravo], roots: [], now: NOW }, 'UNKNOWN_AUTHORITY');
    fails({ leaf, intermediates: [bravo], roots: [root], now: NOW }, 'UNKNOWN_AUTHORITY');
  });
  it('says which authority is missing', () => {
    const answer = verifyChain({ leaf, intermediates: [delta], roots: [root], now: NOW });
    assert.ok(!answer.ok && answer.reason.includes('"delta" is signed by "bravo"'), JSON.stringify(answer));
  });
  it('hosts', () => {
    const question = { leaf, intermediates: [delta, bravo], roots: [root], now: NOW };
    for (const host of ['localhost', 'www.example.com', '127.0.0.1', 'x.apps.example.com'])
      verifies({ ...question, host }, 4);
    for (const host of ['www.foo.com', '127.0.0.2', 'a.b.apps.example.com'])
      fails({ ...question, host }, 'HOST_MISMATCH');
  });
  it('usages of the leaf', async () => {
    const signer = hierarchy.root;
    const client = own(await issueClient({ ...base, signer, user: { name: 'u' } }));
    verifies({ leaf: client, roots: [root], now: NOW, usage: 'clientAuth' }, 2);
    fails({ leaf: client, roots: [root], now: NOW, usage: 'serverAuth' }, 'WRONG_USAGE');
    verifies({ leaf: client, roots: [root], now: NOW }, 2);
    verifies({ leaf, roots: [delta], now: NOW, usage: 'serverAuth' }, 2);
    fails({ leaf, roots: [delta], now: NOW, usage: 'clientAuth' }, 'WRONG_USAGE');
    verifies({ leaf: root, roots: [root], now: NOW, usage: 'clientAuth' }, 1);
  });
  it('usages of a CA bind what is below', async () => {
    const serverOnly = await handmade({
      extensions: [ca(), extension('2.5.29.37', sequence(oid('1.3.6.1.5.5.7.3.1')))],
    });
    const client = own(await issueClient({ ...base, signer: serverOnly, user: { name: 'u' } }));
    fails({ leaf: client, roots: serverOnly.chain, now: NOW, usage: 'clientAuth' }, 'WRONG_USAGE');
    const any = await handmade({
      subject: { commonName: 'any' },
      extensions: [ca(), extension('2.5.29.37', sequence(oid('2.5.29.37.0')))],
    });
    const second = own(await issueClient({ ...base, signer: any, user: { name: 'u' } }));
    verifies({ leaf: second, roots: any.chain, now: NOW, usage: 'clientAuth' }, 2);
  });
  it('dates: both ends included, for leaf and anchor', async () => {
    const signer = await sampleSigner({ lifetimeMs: 60_000 });
    const short = own(await sampleServing(signer));
    const question = { leaf: short, roots: signer.chain };
    verifies({ ...question, now: at(-1) }, 2);
    verifies({ ...question, now: at(60) }, 2);
    fails({ ...question, now: at(-1.001) }, 'NOT_YET_VALID');
    fails({ ...question, now: at(60.001) }, 'EXPIRED');
    const long = await handmade({ signer, notAfter: time(at(3600)) });
    fails({ leaf: own(long), roots: signer.chain, now: at(61) }, 'EXPIRED');
  });
  it('a valid anchor is found behind an expired one of the same name and key', async () => {
    const key = { ...keys, generate: async () => hierarchy.root.key };
    const expired = own(
      await issueSigner({ ...base, keys: key, commonName: 'root', now: at(-7200), lifetimeMs: 1000 }),
    );
    verifies({ leaf: bravo, roots: [expired, root], now: NOW }, 2);
    fails({ leaf: bravo, roots: [expired], now: NOW }, 'EXPIRED');
  });
  it('the right name with another key', async () => {
    const impostor = own(await issueSigner({ ...base, commonName: 'root' }));
    fails({ leaf: bravo, roots: [impostor], now: NOW }, 'BAD_SIGNATURE');
    verifies({ leaf: bravo, roots: [impostor, root], now: NOW }, 2);
  });
  it('a changed leaf', () => {
    const der = Buffer.from(leaf.der);
    der[der.lastIndexOf(Buffer.from('www.example.com'))] = 'v'.charCodeAt(0);
    fails({ leaf: parseCertificate(der), roots: [delta], now: NOW }, 'BAD_SIGNATURE');
  });
  it('names are compared by bytes, not by text', async () => {
    const printable = await handmade({ subject: { commonName: 'same' }, extensions: [ca()] });
    const leafOfIt = own(await issueServing({ ...base, signer: printable, hostnames: ['x'] }));
    const utf8 = sequence(element(0x31, sequence(oid('2.5.4.3'), element(0x0c, Buffer.from('same')))));
    const reencoded = own(await handmade({ subject: utf8, extensions: [ca()] }));
    fails({ leaf: leafOfIt, roots: [reencoded], now: NOW }, 'UNKNOWN_AUTHORITY');
  });
  it('CA flag', async () => {
    const { leaf: notCa } = hierarchy;
    const child = own(await handmade({ signer: notCa, subject: { commonName: 'child' } }));
    fails({ leaf: child, roots: [leaf], now: NOW }, 'NOT_A_CA');
    fails({ leaf: child, intermediates: [leaf], roots: [delta], now: NOW }, 'NOT_A_CA');
    const noConstraints = await handmade({ subject: { commonName: 'v3' } });
    const second = own(await handmade({ signer: noConstraints, subject: { commonName: 'child' } }));
    fails({ leaf: second, roots: noConstraints.chain, now: NOW }, 'NOT_A_CA');
    const version1 = await handmade({ subject: { commonName: 'v1' }, version: Buffer.alloc(0) });
    const third = own(await handmade({ signer: version1, subject: { commonName: 'child' } }));
    verifies({ leaf: third, roots: version1.chain, now: NOW }, 2);
    fails({ leaf: third, intermediates: version1.chain, roots: [], now: NOW }, 'NOT_A_CA');
  });
  it('key usage of a CA', async () => {
    const noSign = await handmade({ extensions: [ca(), extension('2.5.29.15', namedBits([0]))] });
    const child = own(await handmade({ signer: noSign, subject: { commonName: 'child' } }));
    fails({ leaf: child, roots: noSign.chain, now: NOW }, 'NOT_A_CA');
  });
  it('path length', async () => {
    const limited = await handmade({
      subject: { commonName: 'limited' },
      extensions: [ca(integer(0))],
      notAfter: time(at(864_000)),
    });
    const inner = await issueIntermediate({ ...base, signer: limited, commonName: 'inner' });
    const direct = own(await issueServing({ ...base, signer: limited, hostnames: ['x'] }));
    const below = own(await issueServing({ ...base, signer: inner, hostnames: ['x'] }));
    verifies({ leaf: direct, roots: limited.chain, now: NOW }, 2);
    fails({ leaf: below, intermediates: inner.chain, roots: limited.chain, now: NOW }, 'PATH_TOO_LONG');
    verifies({ leaf: below, roots: [own(inner)], now: NOW }, 2);
  });
  it('extensions that are not understood', async () => {
    const critical = own(
      await handmade({
        signer: hierarchy.root,
        subject: { commonName: 'c' },
        extensions: [extension('1.2.3.4', Buffer.of(5, 0))],
      }),
    );
    fails({ leaf: critical, roots: [root], now: NOW }, 'UNSUPPORTED_EXTENSION');
    const constrained = await handmade({
      subject: { commonName: 'nc' },
      extensions: [ca(), sequence(oid('2.5.29.30'), octetString(sequence(element(contextConstructed(0)))))],
    });
    const child = own(await handmade({ signer: constrained, subject: { commonName: 'child' } }));
    fails({ leaf: child, roots: constrained.chain, now: NOW }, 'UNSUPPORTED_EXTENSION');
    const harmless = own(
      await handmade({
        signer: hierarchy.root,
        subject: { commonName: 'p' },
        extensions: [sequence(oid('1.2.3.4'), octetString(Buffer.of(5, 0))), extension('2.5.29.32', sequence())],
      }),
    );
    verifies({ leaf: harmless, roots: [root], now: NOW }, 2);
  });
  it('authorities that signed each other end the search', async () => {
    const [a, b] = [await issueSigner({ ...base, commonName: 'a' }), await issueSigner({ ...base, commonName: 'b' })];
    const cross = async (subject: CertificateAndKey, signer: CertificateAndKey) => {
      const keyOf = { ...keys, generate: async () => subject.key };
      return own(
        await issueIntermediate({ ...base, keys: keyOf, signer, commonName: own(subject).subject.commonName }),
      );
    };
    const intermediates = [await cross(a, b), await cross(b, a)];
    const child = own(await issueServing({ ...base, signer: a, hostnames: ['x'] }));
    fails({ leaf: child, intermediates, roots: [], now: NOW }, 'UNKNOWN_AUTHORITY');
    verifies({ leaf: child, intermediates, roots: b.chain, now: NOW }, 3);
  });
  it('limits: number of signature checks, length', async () => {
    const impostors = await Promise.all(
      Array.from({ length: 101 }, () => issueSigner({ ...base, commonName: 'root' })),
    );
    fails({ leaf: bravo, roots: impostors.map(own), now: NOW }, 'TOO_MANY_CANDIDATES');
    let signer = await sampleSigner({ commonName: 'c0' });
    const top = own(signer);
    for (let i = 1; i < MAX_CHAIN_LENGTH; i++) {
      if (i === MAX_CHAIN_LENGTH - 1)
        verifies(
          { leaf: own(signer), intermediates: signer.chain.slice(1), roots: [top], now: NOW },
          MAX_CHAIN_LENGTH - 1,
        );
      signer = await issueIntermediate({ ...base, signer, commonName: `c${i}` });
    }
    verifies({ leaf: own(signer), intermediates: signer.chain.slice(1), roots: [top], now: NOW }, MAX_CHAIN_LENGTH);
    signer = await issueIntermediate({ ...base, signer, commonName: 'one too many' });
    fails({ leaf: own(signer), intermediates: signer.chain.slice(1), roots: [top], now: NOW }, 'UNKNOWN_AUTHORITY');
  });
  it('certificates of a real cluster', () => {
    const now = new Date('2024-06-01T00:00:00Z');
    const real = fixture('service-serving-leaf');
    verifies(
      {
        leaf: real,
        roots: [fixture('service-ca-signer')],
        now,
        usage: 'serverAuth',
        host: 'api.openshift-apiserver.svc',
      },
      2,
    );
    fails(
      { leaf: real, roots: [fixture('recovery-signer'), fixture('installer-lb-signer')], now },
      'UNKNOWN_AUTHORITY',
    );
    fails({ leaf: fixture('expired-ecdsa'), roots: [fixture('expired-ecdsa')], now }, 'EXPIRED');
  });
});
