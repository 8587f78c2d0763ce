import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { DerReader } from './der-read.ts';
import { bitString, element, integer, namedBits, octetString, oid, sequence, setOf, TAG, time } from './der-write.ts';
import { isPkiError } from './error.ts';

const reader = (hex: string) => new DerReader(Buffer.from(hex, 'hex'), 'test');
const refuses = (read: () => unknown) => assert.throws(read, error => isPkiError(error, 'DER_INVALID'));

describe('DER lengths', () => {
  for (const length of [0, 1, 127, 128, 255, 256, 65_535, 65_536]) {
    it(`round trip of ${length} bytes`, () => {
      const content = Buffer.alloc(length, 7);
      const whole = new DerReader(octetString(content), 'test');
      assert.deepEqual(whole.next(TAG.octetString, 'content').content, content);
      whole.end();
    });
  }

  const broken: [string, string][] = [
    ['empty', ''],
    ['tag only', '30'],
    ['shorter than its length', '0403aabb'],
    ['length cut off', '0482'],
    ['length not the shortest', '048101aa'],
    ['length with a leading zero', `04820080${'00'.repeat(128)}`],
    ['indefinite length', '308000000000'],
    ['length of five bytes', '04850000000001aa'],
    ['tag of two bytes', '1f8101'],
  ];
  for (const [name, hex] of broken) it(`refuses: ${name}`, () => refuses(() => reader(hex).any('element')));

  it('refuses what follows the last field', () => {
    const whole = reader('050000');
    whole.next(TAG.null, 'null');
    refuses(() => whole.end());
  });

  it('names what was expected', () => {
    assert.throws(() => reader('0500').next(TAG.integer, 'serial'), /test: serial at byte 0 has tag 0x5, expected 0x2/);
  });
});

describe('DER integers', () => {
  const table: [bigint, string][] = [
    [0n, '020100'],
    [1n, '020101'],
    [127n, '02017f'],
    [128n, '02020080'],
    [255n, '020200ff'],
    [256n, '02020100'],
    [0x7fffffffffffffffn, '02087fffffffffffffff'],
    [0x8000000000000000n, '0209008000000000000000'],
  ];
  for (const [value, hex] of table) {
    it(`writes and reads ${value}`, () => {
      assert.equal(integer(value).toString('hex'), hex);
      assert.equal(reader(hex).integer('number'), value);
    });
  }
  it('reads negative numbers', () => {
    assert.equal(reader('0201ff').integer('number'), -1n);
    assert.equal(reader('02028000').integer('number'), -32768n);
  });
  for (const hex of ['0200', '02020001', '0202ff80'])
    it(`refuses ${hex}`, () => refuses(() => reader(hex).integer('number')));

  it('round trip of any number', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 1n << 160n }), value => {
        assert.equal(new DerReader(integer(value), 'test').integer('number'), value);
      }),
    );
  });
});

describe('DER object identifiers', () => {
  const table: [string, string][] = [
    ['2.5.29.15', '0603551d0f'],
    ['1.2.840.113549.1.1.11', '06092a864886f70d01010b'],
    ['2.999.3', '0603883703'],
    ['0.39', '060127'],
  ];
  for (const [dotted, hex] of table) {
    it(dotted, () => {
      assert.equal(oid(dotted).toString('hex'), hex);
      assert.equal(reader(hex).oid('type'), dotted);
    });
  }
  for (const hex of ['0600', '060188', '06028001', '060a2affffffffffffffff7f']) {
    it(`refuses ${hex}`, () => refuses(() => reader(hex).oid('type')));
  }
});

describe('DER bit strings, booleans, sets', () => {
  it('named bits carry no trailing zeros', () => {
    assert.equal(namedBits([0, 2]).toString('hex'), '030205a0');
    assert.equal(namedBits([0, 2, 5]).toString('hex'), '030202a4');
    assert.equal(namedBits([8]).toString('hex'), '0303070080');
    assert.equal(namedBits([]).toString('hex'), '030100');
  });
  it('named bits come back', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(8)), bits => {
        const sorted = [...bits].sort((a, b) => a - b);
        assert.deepEqual(new DerReader(namedBits(bits), 'test').namedBits('bits', 9), sorted);
      }),
    );
  });
  it('refuses broken bit strings', () => {
    refuses(() => reader('0300').namedBits('bits', 9));
    refuses(() => reader('030108').namedBits('bits', 9));
    refuses(() => reader('030101').namedBits('bits', 9));
    refuses(() => reader('030201f1').bits('bits'));
    assert.deepEqual(new DerReader(bitString(Buffer.of(1)), 'test').bits('bits'), Buffer.of(1));
  });
  it('booleans are 00 or ff', () => {
    assert.equal(reader('0101ff').boolean('flag'), true);
    assert.equal(reader('010100').boolean('flag'), false);
    refuses(() => reader('010101').boolean('flag'));
    refuses(() => reader('0100').boolean('flag'));
  });
  it('the members of a SET OF are in byte order', () => {
    assert.deepEqual(
      setOf([octetString(Buffer.of(2)), octetString(Buffer.of(1))]),
      setOf([1, 2].map(n => octetString(Buffer.of(n)))),
    );
  });
});

describe('5.1 times', () => {
  const table: [string, string][] = [
    ['2023-12-06T09:21:10Z', '170d3233313230363039323131305a'],
    ['2049-12-31T23:59:59Z', '170d3439313233313233353935395a'],
    ['2050-01-01T00:00:00Z', '180f32303530303130313030303030305a'],
    ['1950-01-01T00:00:00Z', '170d3530303130313030303030305a'],
    ['1949-12-31T23:59:59Z', '180f31393439313233313233353935395a'],
    ['0001-01-01T00:00:00Z', '180f30303031303130313030303030305a'],
    ['9999-12-31T23:59:59Z', '180f39393939313233313233353935395a'],
  ];
  for (const [text, hex] of table) {
    it(`${text}: UTCTime through 2049, GeneralizedTime otherwise`, () => {
      assert.equal(time(new Date(text)).toString('hex'), hex);
      assert.equal(reader(hex).time('time').getTime(), Date.parse(text));
    });
  }
  it('cuts off what is below a second', () => {
    assert.deepEqual(time(new Date('2024-01-01T00:00:00.999Z')), time(new Date('2024-01-01T00:00:00Z')));
  });

  const utc = (text: string) => new DerReader(element(TAG.utcTime, Buffer.from(text)), 'test').time('time');
  const generalized = (text: string) =>
    new DerReader(element(TAG.generalizedTime, Buffer.from(text)), 'test').time('time');
  it('reads times that others write', () => {
    assert.equal(utc('2401010000Z').toISOString(), '2024-01-01T00:00:00.000Z');
    assert.equal(utc('240101000000+0130').toISOString(), '2023-12-31T22:30:00.000Z');
    assert.equal(generalized('20240101000000-0800').toISOString(), '2024-01-01T08:00:00.000Z');
    assert.equal(generalized('20240229120000Z').toISOString(), '2024-02-29T12:00:00.000Z');
  });
  for (const text of [
    '230230000000Z',
    '240101240000Z',
    '241301000000Z',
    '240001000000Z',
    '240101006000Z',
    '240101000060Z',
    '240101000000',
    '240101000000+2400',
    '24010100000Z',
    ' 40101000000Z',
  ]) {
    it(`refuses ${text}`, () => refuses(() => utc(text)));
  }
  for (const text of ['20230230000000Z', '20240101000000.5Z', '202401010000Z', '20240101000000']) {
    it(`refuses ${text}`, () => refuses(() => generalized(text)));
  }
  it('refuses other types', () => refuses(() => reader('0500').time('time')));
});

describe('DER reader on arbitrary bytes', () => {
  it('throws nothing but DER_INVALID', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), bytes => {
        for (const read of ['any', 'integer', 'boolean', 'oid', 'bits', 'time'] as const) {
          try {
            new DerReader(Buffer.from(bytes), 'test')[read]('field');
          } catch (error) {
            assert.ok(isPkiError(error, 'DER_INVALID'), String(error));
          }
        }
      }),
      { numRuns: 500 },
    );
  });
  it('what it reads, the writer writes again', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 }), parts => {
        const whole = sequence(...parts.map(octetString));
        const list = new DerReader(whole, 'test').enter(TAG.sequence, 'list');
        const back = parts.map(() => list.next(TAG.octetString, 'part').content);
        list.end();
        assert.deepEqual(
          back,
          parts.map(part => Buffer.from(part)),
        );
      }),
    );
  });
});
