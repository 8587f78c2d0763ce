import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Described, describeCertificate, describeCertificates } from './describe.ts';
import { fixture, NOW } from './test-data.ts';

const plain: Described = {
  subject: { commonName: 'leaf', organizations: [] },
  issuer: { commonName: 'signer' },
  extKeyUsages: [],
  dnsNames: [],
  ipAddresses: [],
  notBefore: new Date('2024-01-02T03:04:05Z'),
  notAfter: new Date('2033-12-31T23:59:59Z'),
};
const times = '(Jan 2 03:04:05 2024 to Dec 31 23:59:59 2033 (now=Jan 15 00:00:00 2024))';

describe('3.3 certificate description', () => {
  const table: [string, Partial<Described>, string][] = [
    ['plain', {}, `"leaf" [] issuer="signer" ${times}`],
    [
      'usages in order',
      { extKeyUsages: ['clientAuth', 'serverAuth'] },
      `"leaf" [client,serving] issuer="signer" ${times}`,
    ],
    ['other usages', { extKeyUsages: ['2.5.29.37.0', '1.2.3'] }, `"leaf" [0,1.2.3] issuer="signer" ${times}`],
    [
      'groups',
      { subject: { commonName: 'leaf', organizations: ['a', 'b'] } },
      `"leaf" [] groups=[a,b] issuer="signer" ${times}`,
    ],
    [
      'addresses before names',
      { dnsNames: ['localhost', '::1'], ipAddresses: ['::1'] },
      `"leaf" [] validServingFor=[::1,localhost,::1] issuer="signer" ${times}`,
    ],
    ['self-signed', { issuer: { commonName: 'leaf' } }, `"leaf" [] issuer="<self-signed>" ${times}`],
    ['quoting', { subject: { commonName: 'a"b\\', organizations: [] } }, `"a\\"b\\\\" [] issuer="signer" ${times}`],
  ];
  for (const [name, changes, expected] of table) {
    it(name, () => assert.equal(describeCertificate({ ...plain, ...changes }, NOW), expected));
  }
  it('several: one line each, numbered', () => {
    assert.equal(
      describeCertificates([plain, plain], NOW),
      `[#0]: "leaf" [] issuer="signer" ${times}\n[#1]: "leaf" [] issuer="signer" ${times}`,
    );
    assert.equal(describeCertificates([], NOW), '');
  });
  it('14.15 prints the time it is given', () => {
    assert.match(
      describeCertificate(fixture('recovery-signer'), new Date('2031-05-06T07:08:09Z')),
      /now=May 6 07:08:09 2031/,
    );
  });
});
