import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { element, oid, sequence, setOf, TAG } from './der-write.ts';
import { isPkiError } from './error.ts';
import { MAX_GROUPS, MAX_SUBJECT_VALUE_CHARACTERS } from './limits.ts';
import { encodeName, parseName } from './name.ts';
import { subjectForUser } from './user.ts';

const name = (attributes: Parameters<typeof encodeName>[0]) => parseName(encodeName(attributes), 'test');

describe('5.1 subject strings', () => {
  const table: [string, number, string][] = [
    ['kube-apiserver-lb-signer', TAG.printableString, 'letters, digits, hyphen'],
    ["a 'b' (c) +,-./:=?", TAG.printableString, 'every character PrintableString has'],
    ['system:openshift-aggregator', TAG.printableString, 'colon'],
    ['ns_name', TAG.utf8String, 'underscore'],
    ['signer@1701854470', TAG.utf8String, 'at sign'],
    ['*.apps.example.com', TAG.utf8String, 'asterisk'],
    ['R&D', TAG.utf8String, 'ampersand'],
    ['Zürich', TAG.utf8String, 'beyond ASCII'],
  ];
  for (const [value, tag, why] of table) {
    it(`${why}: ${tag === TAG.utf8String ? 'UTF8String' : 'PrintableString'}`, () => {
      const expected = sequence(setOf([sequence(oid('2.5.4.3'), element(tag, Buffer.from(value)))]));
      assert.deepEqual(encodeName({ commonName: value }), expected);
      assert.equal(name({ commonName: value }).commonName, value);
    });
  }
  it('CN length: 78 characters and more are fine', () => {
    const long = 'openshift-kube-apiserver-operator_localhost-recovery-serving-signer@1701854470';
    assert.equal(name({ commonName: long }).commonName, long);
  });
  it('bounds: value length and number of values', () => {
    const tooLong = { commonName: 'x'.repeat(MAX_SUBJECT_VALUE_CHARACTERS + 1) };
    assert.throws(
      () => encodeName(tooLong),
      error => isPkiError(error, 'TOO_LARGE'),
    );
    const tooMany = { commonName: 'x', organizations: Array.from({ length: MAX_GROUPS + 1 }, (_, i) => `g${i}`) };
    assert.throws(
      () => encodeName(tooMany),
      error => isPkiError(error, 'TOO_LARGE'),
    );
  });
  it('refuses text that is not Unicode', () => {
    assert.throws(
      () => encodeName({ commonName: '\ud800' }),
      error => isPkiError(error, 'SUBJECT_INVALID'),
    );
  });
  it('round trip of any text', () => {
    const text = fc.string({ unit: 'binary', maxLength: 80 });
    fc.assert(
      fc.property(text, fc.array(text, { maxLength: 5 }), text, (commonName, organizations, serialNumber) => {
        const back = name({ commonName, organizations, serialNumber });
        assert.equal(back.commonName, commonName);
        assert.equal(back.serialNumber, serialNumber);
        assert.deepEqual([...back.organizations].sort(), [...organizations].sort());
      }),
    );
  });
});

describe('5.5 client subject', () => {
  it('CN, O and serialNumber from name, groups and uid', () => {
    const subject = name(subjectForUser({ name: 'system:admin', groups: ['system:masters'], uid: '1234' }));
    assert.equal(subject.commonName, 'system:admin');
    assert.deepEqual(subject.organizations, ['system:masters']);
    assert.equal(subject.serialNumber, '1234');
  });
  it('DN order O, CN, serialNumber', () => {
    const der = encodeName(subjectForUser({ name: 'n', groups: ['g'], uid: 'u' })).toString('hex');
    const positions = ['060355040a', '0603550403', '0603550405'].map(hex => der.indexOf(hex));
    assert.ok(positions.every(position => position > 0));
    assert.deepEqual(
      positions,
      [...positions].sort((a, b) => a - b),
    );
  });
  it('all groups in one RDN, ordered by length, then by bytes', () => {
    const groups = ['system:etcd', 'etcd-client', 'bb', 'a', 'ccc'];
    const expected = ['a', 'bb', 'ccc', 'etcd-client', 'system:etcd'];
    const value = (group: string) => sequence(oid('2.5.4.10'), element(TAG.printableString, Buffer.from(group)));
    const commonName = setOf([sequence(oid('2.5.4.3'), element(TAG.printableString, Buffer.from('x')))]);
    const der = sequence(element(TAG.set, ...expected.map(value)), commonName);
    assert.deepEqual(encodeName(subjectForUser({ name: 'x', groups })), der);
    assert.deepEqual(name(subjectForUser({ name: 'x', groups })).organizations, expected);
  });
  it('no groups: no O; empty uid: no serialNumber', () => {
    const onlyName = sequence(setOf([sequence(oid('2.5.4.3'), element(TAG.printableString, Buffer.from('x')))]));
    assert.deepEqual(encodeName(subjectForUser({ name: 'x', groups: [], uid: '' })), onlyName);
    assert.deepEqual(encodeName(subjectForUser({ name: 'x' })), onlyName);
  });
  it('a user needs a name', () => {
    assert.throws(
      () => subjectForUser({ name: '' }),
      error => isPkiError(error, 'SUBJECT_INVALID'),
    );
  });
  it('the order of the groups given does not matter', () => {
    const groups = ['a', 'bb', 'system:masters', 'x_y', 'é'];
    fc.assert(
      fc.property(fc.shuffledSubarray(groups, { minLength: groups.length }), shuffled => {
        assert.deepEqual(
          encodeName({ commonName: 'x', organizations: shuffled }),
          encodeName({ commonName: 'x', organizations: groups }),
        );
      }),
    );
  });
});

describe('reading names others wrote', () => {
  const attribute = (type: string, tag: number, content: Buffer) => sequence(oid(type), element(tag, content));
  const parse = (...rdns: Buffer[]) => parseName(sequence(...rdns), 'test');
  it('string types', () => {
    const of = (tag: number, content: Buffer) => parse(setOf([attribute('2.5.4.3', tag, content)])).commonName;
    assert.equal(of(TAG.teletexString, Buffer.from('caf\xe9', 'latin1')), 'café');
    assert.equal(of(TAG.bmpString, Buffer.from('00480069', 'hex')), 'Hi');
    assert.equal(of(TAG.ia5String, Buffer.from('a@b')), 'a@b');
    assert.equal(of(TAG.numericString, Buffer.from('4 2')), '4 2');
    assert.equal(of(TAG.printableString, Buffer.from('*.a&b')), '*.a&b');
    assert.equal(of(TAG.utf8String, Buffer.from('\ufeffx')), '\ufeffx');
  });
  it('separate RDNs for groups, the last common name wins, unknown attributes pass', () => {
    const country = setOf([attribute('2.5.4.6', TAG.printableString, Buffer.from('US'))]);
    const groups = ['b', 'a'].map(o => setOf([attribute('2.5.4.10', TAG.utf8String, Buffer.from(o))]));
    const names = ['first', 'last'].map(cn => setOf([attribute('2.5.4.3', TAG.utf8String, Buffer.from(cn))]));
    const unit = setOf([attribute('2.5.4.11', TAG.utf8String, Buffer.from('openshift'))]);
    const parsed = parse(country, ...groups, unit, ...names);
    assert.equal(parsed.commonName, 'last');
    assert.deepEqual(parsed.organizations, ['b', 'a']);
    assert.deepEqual(parsed.organizationalUnits, ['openshift']);
  });
  const broken: [string, number, Buffer][] = [
    ['UTF8String that is not UTF-8', TAG.utf8String, Buffer.of(0xff)],
    ['PrintableString beyond ASCII', TAG.printableString, Buffer.of(0xe9)],
    ['PrintableString with an underscore', TAG.printableString, Buffer.from('a_b')],
    ['NumericString with a letter', TAG.numericString, Buffer.from('4x')],
    ['IA5String beyond ASCII', TAG.ia5String, Buffer.of(0xe9)],
    ['BMPString of odd length', TAG.bmpString, Buffer.of(0, 65, 0)],
    ['a number as value', TAG.integer, Buffer.of(1)],
  ];
  for (const [what, tag, content] of broken) {
    it(`refuses ${what}`, () => {
      assert.throws(
        () => parse(setOf([attribute('2.5.4.3', tag, content)])),
        error => isPkiError(error, 'DER_INVALID'),
      );
    });
  }
});
