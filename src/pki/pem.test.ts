import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { before, describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { Certificate } from './certificate.ts';
import { isPkiError, type PkiErrorCode } from './error.ts';
import { seededKeys } from './keys.ts';
import { MAX_BUNDLE_CERTIFICATES, MAX_CERTIFICATE_BYTES, MAX_PEM_CHARACTERS, MAX_SKIPPED_REPORTED } from './limits.ts';
import { encodeCertificates, encodePrivateKey, readCertificates, readPrivateKey } from './pem.ts';
import { encodePem, pemBlocks } from './pem-block.ts';
import { fixture, handmade, vectors } from './test-data.ts';

const pem = (name: string) => vectors.fixtures[name]!.pem;
const LB = pem('installer-lb-signer');
const RECOVERY = pem('recovery-signer');
const throwsCode = (run: () => unknown, code: PkiErrorCode) => assert.throws(run, error => isPkiError(error, code));
const commonNames = (certificates: readonly Certificate[]) => certificates.map(({ subject }) => subject.commonName);

describe('P-1 layout', () => {
  it('what Go wrote comes out byte for byte', () => {
    const all = Object.values(vectors.fixtures)
      .map(({ pem }) => pem)
      .join('');
    assert.equal(encodeCertificates(readCertificates(all).certificates), all);
  });
  it('64 characters a line, LF, no blank lines, final LF, for all lengths modulo 48', () => {
    for (let length = 1; length <= 97; length++) {
      const bytes = Buffer.alloc(length, length);
      const lines = encodePem('X', bytes).split('\n');
      assert.equal(lines.shift(), '-----BEGIN X-----');
      assert.deepEqual(lines.splice(-2), ['-----END X-----', '']);
      assert.ok(lines.slice(0, -1).every(line => line.length === 64));
      assert.ok(lines.at(-1)!.length > 0 && lines.at(-1)!.length <= 64);
      assert.equal(lines.join(''), bytes.toString('base64'));
    }
  });
  it('round trip of any bytes, blocks directly after each other', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 4 }), contents => {
        const text = contents.map(content => encodePem('ANY', Buffer.from(content))).join('');
        const back = [...pemBlocks(text)].map(block => (block.ok ? block.bytes : undefined));
        assert.deepEqual(
          back,
          contents.map(content => Buffer.from(content)),
        );
      }),
    );
  });
  it('nothing gives the empty text', () => assert.equal(encodeCertificates([]), ''));
});

describe('P-4, P-5 private keys', () => {
  const keys: Record<string, KeyObject> = {};
  before(async () => {
    keys['rsa'] = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
    keys['P-256'] = await seededKeys('a').generate('P-256');
    keys['P-384'] = await seededKeys('a').generate('P-384');
    keys['Ed25519'] = await seededKeys('a').generate('Ed25519');
  });

  const written: [string, string][] = [
    ['rsa', 'RSA PRIVATE KEY'],
    ['P-256', 'EC PRIVATE KEY'],
    ['P-384', 'EC PRIVATE KEY'],
    ['Ed25519', 'PRIVATE KEY'],
  ];
  for (const [kind, label] of written) {
    it(`P-4 ${kind} is written as ${label} and read back`, () => {
      const text = encodePrivateKey(keys[kind]!);
      assert.ok(text.startsWith(`-----BEGIN ${label}-----\n`) && text.endsWith(`-----END ${label}-----\n`));
      assert.ok(readPrivateKey(text).equals(keys[kind]!));
    });
    it(`P-5 ${kind} is read from PKCS#8`, () => {
      const text = String(keys[kind]!.export({ format: 'pem', type: 'pkcs8' }));
      assert.ok(readPrivateKey(text).equals(keys[kind]!));
    });
  }
  it('P-5 the label does not decide', () => {
    const mislabelled = encodePrivateKey(keys['rsa']!).replaceAll('RSA PRIVATE', 'PRIVATE');
    assert.ok(readPrivateKey(mislabelled).equals(keys['rsa']!));
  });
  it('P-5 other blocks before the key are passed over', () => {
    const text = `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${LB}${encodePrivateKey(keys['P-256']!)}`;
    assert.ok(readPrivateKey(text).equals(keys['P-256']!));
  });

  const refused: [string, () => string][] = [
    ['no block', () => 'nothing'],
    ['a certificate', () => LB],
    ['a public key', () => encodePem('PUBLIC KEY', Buffer.of(0x30, 0))],
    ['a truncated key', () => encodePem('EC PRIVATE KEY', Buffer.of(0x30, 3, 2, 1))],
    ['an empty key', () => encodePem('PRIVATE KEY', Buffer.alloc(0))],
    ['garbage', () => encodePem('PRIVATE KEY', Buffer.of(0x30, 3, 2, 1, 1))],
    [
      'trailing bytes',
      () =>
        encodePem(
          'EC PRIVATE KEY',
          Buffer.concat([keys['P-256']!.export({ format: 'der', type: 'sec1' }), Buffer.of(0)]),
        ),
    ],
    [
      'an encrypted key',
      () => String(keys['P-256']!.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-128-cbc', passphrase: 'x' })),
    ],
    [
      'a key with PEM headers',
      () => encodePrivateKey(keys['rsa']!).replace('KEY-----\n', 'KEY-----\nProc-Type: 4,ENCRYPTED\n\n'),
    ],
    ['another kind', () => String(generateKeyPairSync('x25519').privateKey.export({ format: 'pem', type: 'pkcs8' }))],
  ];
  for (const [what, text] of refused) {
    it(`P-5 refuses ${what}`, () => throwsCode(() => readPrivateKey(text()), 'KEY_INVALID'));
  }
  it('errors never show the key', () => {
    const secret = encodePrivateKey(keys['P-256']!).split('\n')[1]!;
    for (const text of [`-----BEGIN EC PRIVATE KEY-----\n${secret}\n-----END EC PRIVATE KEY-----\n`, secret]) {
      assert.throws(
        () => readPrivateKey(text),
        error =>
          error instanceof Error && error.cause === undefined && !String(error.stack).includes(secret.slice(0, 16)),
      );
    }
  });
  it('only private keys are written', async () => {
    const publicKey = generateKeyPairSync('ed25519').publicKey;
    throwsCode(() => encodePrivateKey(publicKey), 'KEY_UNSUPPORTED');
  });
});

describe('P-7 reading certificates', () => {
  const base64 = LB.split('\n').slice(1, -2).join('\n');
  const block = (body: string, label = 'CERTIFICATE') => `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`;

  const read: [string, string, number, [string, string, number][]][] = [
    ['one block', LB, 1, []],
    ['two blocks', LB + RECOVERY, 2, []],
    ['CRLF', LB.replaceAll('\n', '\r\n'), 1, []],
    ['no final line end', LB.trimEnd(), 1, []],
    ['text around and between', `# CA\n${LB}\nsubject=/CN=x\n\n${RECOVERY}bye`, 2, []],
    ['one long line', block(base64.replaceAll('\n', '')), 1, []],
    ['blanks in the base64', block(base64.replaceAll('\n', ' \t\n  ')), 1, []],
    ['blanks after the dashes', LB.replaceAll('-----\n', '-----  \t\n'), 1, []],
    [
      '14.20 a block with headers is skipped',
      `${block(`Comment: x\n\n${base64}`)}${RECOVERY}`,
      1,
      [['CERTIFICATE', 'headers', 1]],
    ],
    [
      '14.20 broken base64 is skipped',
      `${RECOVERY}${block(`!${base64}`)}`,
      1,
      [['CERTIFICATE', 'malformed', RECOVERY.split('\n').length]],
    ],
    ['14.20 base64 without its padding is skipped', `${block('QUI')}${RECOVERY}`, 1, [['CERTIFICATE', 'malformed', 1]]],
    [
      '14.20 TRUSTED CERTIFICATE is skipped',
      block(base64, 'TRUSTED CERTIFICATE') + RECOVERY,
      1,
      [['TRUSTED CERTIFICATE', 'type', 1]],
    ],
    ['a key is skipped', block('QUJD', 'PRIVATE KEY') + LB, 1, [['PRIVATE KEY', 'type', 1]]],
    [
      'labels that differ',
      `${LB.replace('END CERTIFICATE', 'END CERT')}${RECOVERY}`,
      1,
      [['CERTIFICATE', 'malformed', 1]],
    ],
    ['a BEGIN without an END', `-----BEGIN CERTIFICATE-----\n${base64}\n${RECOVERY}`, 1, []],
    ['an END without a BEGIN', `x\n-----END CERTIFICATE-----\n${RECOVERY}`, 1, [['', 'malformed', 2]]],
    ['text after the END label', `${LB.trimEnd()}x\n${RECOVERY}`, 1, [['CERTIFICATE', 'malformed', 1]]],
    ['an indented BEGIN', ` ${LB}${RECOVERY}`, 1, [['', 'malformed', LB.split('\n').length - 1]]],
  ];
  for (const [name, text, count, skipped] of read) {
    it(`reads ${name}`, () => {
      const result = readCertificates(text);
      assert.equal(result.certificates.length, count);
      assert.deepEqual(
        result.skipped.map(({ type, reason, line }) => [type, reason, line]),
        skipped,
      );
    });
  }
  it('keeps the order of the text', () => {
    assert.deepEqual(
      commonNames(readCertificates(RECOVERY + LB).certificates),
      commonNames([fixture('recovery-signer'), fixture('installer-lb-signer')]),
    );
  });

  const refused: [string, string, PkiErrorCode][] = [
    ['an empty text', '', 'NO_CERTIFICATES'],
    ['text without blocks', 'invalid ca', 'NO_CERTIFICATES'],
    ['only a key', block('QUJD', 'PRIVATE KEY'), 'NO_CERTIFICATES'],
    ['a truncated text', LB.slice(0, 400), 'NO_CERTIFICATES'],
    ['valid base64 that is no certificate', `${LB}${block('QUJD')}`, 'CERTIFICATE_INVALID'],
    ['an empty block', `${LB}-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n`, 'CERTIFICATE_INVALID'],
    [
      'two certificates in one block',
      block(Buffer.concat([fixture('recovery-signer').der, fixture('installer-lb-signer').der]).toString('base64')),
      'CERTIFICATE_INVALID',
    ],
    [
      'a certificate cut short',
      block(fixture('recovery-signer').der.subarray(0, 300).toString('base64')),
      'CERTIFICATE_INVALID',
    ],
  ];
  for (const [name, text, code] of refused) it(`refuses ${name}`, () => throwsCode(() => readCertificates(text), code));
  it('the error text of a text without certificates', () => {
    assert.throws(() => readCertificates('x'), {
      message: 'data does not contain any valid RSA or ECDSA certificates',
    });
  });
  it('the error of a broken block names its line', () => {
    assert.throws(() => readCertificates(`\n\n${block('QUJD')}`), /CERTIFICATE block at line 3/);
  });
});

describe('limits', () => {
  it('PEM text', () => {
    throwsCode(() => readCertificates('x'.repeat(MAX_PEM_CHARACTERS + 1)), 'TOO_LARGE');
    throwsCode(() => readPrivateKey('x'.repeat(MAX_PEM_CHARACTERS + 1)), 'TOO_LARGE');
  });
  it('a certificate', () => {
    throwsCode(() => readCertificates(encodePem('CERTIFICATE', Buffer.alloc(MAX_CERTIFICATE_BYTES + 1))), 'TOO_LARGE');
  });
  it('the number of certificates', async () => {
    const small = encodeCertificates(
      (await handmade({ version: Buffer.alloc(0), subject: { commonName: 'x' } })).chain,
    );
    const text = small.repeat(MAX_BUNDLE_CERTIFICATES);
    assert.ok(text.length + small.length <= MAX_PEM_CHARACTERS);
    assert.equal(readCertificates(text).certificates.length, MAX_BUNDLE_CERTIFICATES);
    throwsCode(() => readCertificates(text + small), 'TOO_LARGE');
  });
  it('skipped blocks are named up to a limit', () => {
    const { skipped } = readCertificates(encodePem('X', Buffer.of(1)).repeat(2 * MAX_SKIPPED_REPORTED) + LB);
    assert.equal(skipped.length, MAX_SKIPPED_REPORTED);
  });
});

describe('PEM reader on hostile text', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '-----BEGIN ',
      '-----END ',
      '\n-----END ',
      '-----BEGIN CERTIFICATE-----',
      '-----END CERTIFICATE-----',
      '-----',
      '\n',
      '\r\n',
      ':',
      ' ',
      '=',
      'QUJD',
      'MIIB',
    ),
    fc.constantFrom(LB, RECOVERY),
    fc.string({ unit: 'binary', maxLength: 20 }),
  );
  it('throws nothing but PkiError', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), pieces => {
        for (const read of [readCertificates, readPrivateKey]) {
          try {
            read(pieces.join(''));
          } catch (error) {
            assert.ok(isPkiError(error), String(error));
          }
        }
      }),
      { numRuns: 1000 },
    );
  });
  it('a certificate with any byte changed gives a certificate or CERTIFICATE_INVALID', () => {
    const { der } = fixture('service-serving-leaf');
    fc.assert(
      fc.property(fc.nat(der.length - 1), fc.nat(255), (position, value) => {
        const changed = Buffer.from(der);
        changed[position] = value;
        try {
          readCertificates(encodePem('CERTIFICATE', changed));
        } catch (error) {
          assert.ok(isPkiError(error, 'CERTIFICATE_INVALID'), String(error));
        }
      }),
      { numRuns: 2000 },
    );
  });
  it('every block found is one Go would find: label lines of its own, strict base64', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), pieces => {
        const text = pieces.join('');
        const lines = text.split('\n').map(line => line.replace(/\r$/, '').replace(/[ \t]+$/, ''));
        for (const block of pemBlocks(text)) {
          if (block.ok) assert.equal(lines[block.line - 1]!.replace(/^-----END /, ''), `-----BEGIN ${block.type}-----`);
        }
      }),
      { numRuns: 1000 },
    );
  });
  const repeated: [string, string][] = [
    ['END lines', '\n-----END X-----'],
    ['BEGIN lines', '-----BEGIN X-----\n'],
    ['headers', 'a: b\n'],
    ['half blocks', '-----BEGIN X-----\na:\n-----END X-----:\n'],
    ['dashes', '-'],
    ['empty blocks', '-----BEGIN -----\n-----END -----\n'],
    ['blanks', '\n-----END X-----   '],
  ];
  for (const [name, text] of repeated) {
    it(`reads ${name} without end in linear time`, { timeout: 600_000 }, () => {
      for (const prefix of ['', '-----BEGIN X-----\n']) {
        const whole = (prefix + text.repeat(MAX_PEM_CHARACTERS / text.length)).slice(0, MAX_PEM_CHARACTERS);
        throwsCode(() => readCertificates(whole), 'NO_CERTIFICATES');
      }
    });
  }
});
