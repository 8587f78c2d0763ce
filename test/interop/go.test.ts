import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { type Certificate, parseCertificate } from '../../src/pki/certificate.ts';
import { verifyChain } from '../../src/pki/chain.ts';
import { createCertificateRequest, parseCertificateRequest } from '../../src/pki/csr.ts';
import { isPkiError } from '../../src/pki/error.ts';
import { canonicalHost, parseIp } from '../../src/pki/hosts.ts';
import { type KeyAlgorithm, systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readPrivateKey } from '../../src/pki/pem.ts';
import { pemBlocks } from '../../src/pki/pem-block.ts';
import { fixture, vectors } from '../../src/pki/test-data.ts';
import { ALGORITHMS, type Issued, issueAll, KINDS, type Kind, pemOf, USER } from './issued.ts';
import { find, run } from './program.ts';

const go = find('go');
const skip = go ? false : 'go is not installed';

interface Answer {
  ok: boolean;
  error?: string;
  /** Base64, as Go writes bytes into JSON. */
  der?: string;
  text?: string;
  blocks?: { type: string; headers: boolean; bytes: string }[];
  forms?: { name: string; pem: string }[];
  fields?: {
    commonName: string;
    organizations: string[];
    notBefore: number;
    notAfter: number;
    isCA: boolean;
    dnsNames: string[];
    ipAddresses: string[];
    subjectKeyId: string | null;
    authorityKeyId: string | null;
  };
}

describe("Go's libraries agree with ours", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-go-'));
  const program = join(folder, 'interop');
  const now = new Date(Math.floor(Date.now() / 1000) * 1000);
  const issued = new Map<KeyAlgorithm, Issued>();

  before(async () => {
    const source = fileURLToPath(new URL('go', import.meta.url));
    const env = { CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '' };
    const [, ...pairs] = await Promise.all([
      run(go!, ['build', '-o', program, '.'], { cwd: source, env }),
      ...ALGORITHMS.map(async algorithm => [algorithm, await issueAll(algorithm, now)] as const),
    ]);
    for (const [algorithm, pair] of pairs) issued.set(algorithm, pair);
  });
  after(() => rmSync(folder, { recursive: true }));

  async function ask(questions: readonly object[]): Promise<Answer[]> {
    const answers: Answer[] = JSON.parse(await run(program, [], { input: JSON.stringify(questions) }));
    assert.equal(answers.length, questions.length);
    return answers;
  }

  const signerOf = (pairs: Issued, kind: Kind) =>
    kind === 'signer' || kind === 'intermediate' ? pairs.signer : pairs.intermediate;

  for (const algorithm of ALGORITHMS) {
    it(`${algorithm}: crypto/tls takes certificate and key of every kind`, async () => {
      const pairs = issued.get(algorithm)!;
      const questions = KINDS.map(kind => ({
        op: 'keypair',
        cert: pemOf(pairs[kind]).chain,
        key: pemOf(pairs[kind]).key,
      }));
      assert.deepEqual(
        (await ask(questions)).map(({ error }) => error),
        KINDS.map(() => undefined),
      );
    });

    it(`${algorithm}: crypto/x509 issues the same certificate from the same input, byte for byte`, async () => {
      const pairs = issued.get(algorithm)!;
      const questions = KINDS.map(kind => {
        const signer = pemOf(signerOf(pairs, kind));
        return {
          op: 'issue',
          cert: pemOf(pairs[kind]).cert,
          roots: signer.cert,
          key: signer.key,
          template: templateOf(kind, pairs[kind].chain[0]!),
        };
      });
      for (const [i, answer] of (await ask(questions)).entries()) {
        assert.equal(answer.error, undefined);
        const ours = pairs[KINDS[i]!].chain[0]!;
        const theirs = parseCertificate(Buffer.from(answer.der!, 'base64'));
        assert.deepEqual(theirs.subject.der, ours.subject.der);
        assert.deepEqual(theirs.issuer.der, ours.issuer.der);
        assert.deepEqual(theirs.subjectKeyId, ours.subjectKeyId);
        assert.deepEqual(theirs.authorityKeyId, ours.authorityKeyId);
        assert.deepEqual(theirs.extensions, ours.extensions);
        assert.deepEqual(theirs.tbs, ours.tbs);
        // ECDSA signatures are random; the others follow from what is signed.
        if (!algorithm.startsWith('P-')) assert.deepEqual(theirs.der, ours.der);
      }
    });

    it(`${algorithm}: keys are written alike, and read in every form`, async () => {
      const { key } = issued.get(algorithm)!.client;
      const [answer] = await ask([{ op: 'keyForms', key: encodePrivateKey(key) }]);
      assert.equal(answer?.forms?.[0]?.pem, encodePrivateKey(key));
      for (const { pem } of answer.forms) assert.ok(readPrivateKey(pem).equals(key));
    });

    it(`${algorithm}: certificate requests are read both ways`, async () => {
      const { key } = issued.get(algorithm)!.client;
      const wanted = { commonName: USER.name, groups: USER.groups, dnsNames: ['n.example'], ips: ['10.0.0.1', '::1'] };
      const subject = { commonName: USER.name, organizations: USER.groups };
      const ours = await createCertificateRequest({
        keys: systemKeys,
        key,
        subject,
        dnsNames: wanted.dnsNames,
        ipAddresses: wanted.ips,
      });
      const [read, made] = await ask([
        { op: 'request', der: ours.der.toString('base64') },
        { op: 'newRequest', key: encodePrivateKey(key), template: wanted },
      ]);
      assert.equal(read?.error, undefined);
      assert.deepEqual(
        [read?.fields?.commonName, read?.fields?.dnsNames, read?.fields?.ipAddresses],
        [USER.name, wanted.dnsNames, wanted.ips],
      );
      const theirs = parseCertificateRequest(Buffer.from(made!.der!, 'base64'));
      assert.deepEqual(theirs.subject.der, ours.subject.der);
      assert.deepEqual(theirs.extensions, ours.extensions);
      assert.ok(theirs.publicKey.equals(ours.publicKey));
    });
  }

  /** The input of an issuance, as the Go program wants to hear it. */
  function templateOf(kind: Kind, ours: Certificate): object {
    const common = { kind, serial: String(ours.serial), notBefore: ours.notBefore, notAfter: ours.notAfter };
    if (kind === 'client') return { ...common, commonName: USER.name, groups: USER.groups, uid: USER.uid };
    return { ...common, commonName: ours.subject.commonName, dnsNames: ours.dnsNames, ips: ours.ipAddresses };
  }

  it('crypto/x509 verifies and refuses the same chains', async () => {
    const [pairs, other] = [issued.get('P-256')!, issued.get('Ed25519')!];
    const authorities = [pairs.signer, pairs.intermediate, other.signer].map(({ chain }) => chain[0]!);
    const leaves = [pairs.serving, pairs.client, pairs.peer, pairs.intermediate].map(({ chain }) => chain[0]!);
    const subsets = (pool: readonly Certificate[]) =>
      pool.reduce<Certificate[][]>((sets, c) => [...sets, ...sets.map(set => [...set, c])], [[]]);
    const moments = [
      now,
      pairs.intermediate.chain[0]!.notAfter,
      new Date(now.getTime() - 2000),
      new Date(now.getTime() + 4000 * 86_400_000),
    ];
    const cases = leaves.flatMap(leaf =>
      [...subsets(authorities), [leaf]].flatMap(roots =>
        subsets(authorities).flatMap(intermediates =>
          (['any', 'clientAuth', 'serverAuth'] as const).flatMap(usage =>
            [undefined, 'localhost', 'x.apps.example.com', '[::1]', 'other.example'].map((host, i) => ({
              leaf,
              roots,
              intermediates,
              usage,
              host,
              now: moments[i % moments.length]!,
            })),
          ),
        ),
      ),
    );
    const questions = cases.map(({ leaf, roots, intermediates, usage, host, now }) => ({
      op: 'verify',
      cert: encodeCertificates([leaf]),
      roots: encodeCertificates(roots),
      intermediates: encodeCertificates(intermediates),
      usage,
      host,
      now,
    }));
    const answers = await ask(questions);
    const accepted = cases.filter((question, i) => {
      const ours = verifyChain(question);
      assert.equal(ours.ok, answers[i]!.ok, `ours: ${ours.ok ? 'ok' : ours.reason}; Go: ${answers[i]!.error ?? 'ok'}`);
      return ours.ok;
    });
    assert.ok(
      accepted.length > 50 && cases.length - accepted.length > 50,
      `${accepted.length} of ${cases.length} accepted`,
    );
  });

  it('encoding/pem finds the same blocks in any text', async () => {
    const base64 = fixture('recovery-signer').der.toString('base64');
    const piece = fc.oneof(
      fc.constantFrom(
        '-----BEGIN ',
        '-----END ',
        '\n-----END ',
        '-----BEGIN X-----',
        '-----END X-----',
        '-----BEGIN X-----\n',
        '\n-----END X-----',
        '-----',
        '-----BEGIN -----',
        '-----END -----',
      ),
      fc.constantFrom(
        '\n',
        '\r\n',
        '\r',
        ':',
        'a: b\n',
        'a:\n\n',
        ' ',
        '\t',
        '=',
        '==',
        'QUJD',
        'QUI=',
        'QQ==',
        'QQ',
        'QUI=\n=',
        'X',
        base64,
      ),
      fc.constantFrom(
        '-----BEGIN X-----\nQUJD\n-----END X-----\n',
        '-----BEGIN X-----\r\nQUI=\r\n-----END X-----\r\n',
        vectors.fixtures['recovery-signer']!.pem,
      ),
      fc.string({ maxLength: 6 }),
    );
    const texts = fc.sample(
      fc.array(piece, { maxLength: 14 }).map(pieces => pieces.join('')),
      { numRuns: 20_000, seed: 1 },
    );
    const answers = await ask(texts.map(text => ({ op: 'pem', text })));
    let found = 0;
    for (const [i, text] of texts.entries()) {
      const ours = [...pemBlocks(text)].filter(block => block.ok);
      found += ours.length;
      const comparable = ours.map(({ type, hasHeaders, bytes }) => ({
        type,
        headers: hasHeaders,
        bytes: bytes.toString('base64'),
      }));
      assert.deepEqual(comparable, answers[i]!.blocks ?? [], JSON.stringify(text));
    }
    assert.ok(found > 1000, `${found} blocks`);
  });

  it('net.ParseIP reads the same literals, and prints them alike', async () => {
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789abfF:.%'.split('')), maxLength: 40 });
    const group = fc.constantFrom('0', '0', '00', '1', 'ff', 'FFFF', '0001', '', '12345', '1.2.3.4', '01.2.3.4');
    const groups = fc.array(group, { minLength: 2, maxLength: 9 }).map(parts => parts.join(':'));
    const literal = fc.oneof(
      fc.ipV4(),
      fc.ipV4Extended(),
      fc.ipV6(),
      digits,
      groups,
      groups,
      fc.ipV6().map(ip => `${ip}%eth0`),
    );
    const texts = fc.sample(literal, { numRuns: 20_000, seed: 1 });
    const answers = await ask(texts.map(text => ({ op: 'ip', text })));
    for (const [i, text] of texts.entries()) {
      const ours = parseIp(text) ? canonicalHost(text) : undefined;
      assert.equal(ours, answers[i]!.ok ? answers[i]!.text : undefined, text);
    }
  });

  it('every damaged certificate that Go still takes, we take, and read alike', async () => {
    const pool = [...Object.keys(vectors.fixtures).map(fixture), issued.get('Ed25519')!.serving.chain[0]!];
    const damage = fc.tuple(fc.constantFrom(...pool), fc.integer({ min: 0, max: 1 << 20 }), fc.nat(255));
    const damaged = fc.sample(damage, { numRuns: 20_000, seed: 1 }).map(([{ der }, place, value]) => {
      const copy = Buffer.from(der);
      copy[place % copy.length] = value;
      return copy;
    });
    const answers = await ask(damaged.map(der => ({ op: 'parse', der: der.toString('base64') })));
    let taken = 0;
    for (const [i, { fields }] of answers.entries()) {
      if (!fields) continue;
      taken++;
      const ours = parseOr(damaged[i]!);
      const read = {
        commonName: ours.subject.commonName,
        organizations: ours.subject.organizations,
        notBefore: ours.notBefore.getTime(),
        notAfter: ours.notAfter.getTime(),
        isCA: ours.isCA,
        dnsNames: ours.dnsNames,
        ipAddresses: ours.ipAddresses,
        subjectKeyId: ours.subjectKeyId?.toString('base64') ?? null,
        authorityKeyId: ours.authorityKeyId?.toString('base64') ?? null,
      };
      assert.deepEqual(read, fields);
    }
    assert.ok(taken > 1000, `${taken} taken`);
  });

  function parseOr(der: Buffer): Certificate {
    try {
      return parseCertificate(der);
    } catch (error) {
      assert.ok(isPkiError(error));
      return assert.fail(`Go reads this certificate, we say ${error.message}: ${der.toString('base64')}`);
    }
  }
});
