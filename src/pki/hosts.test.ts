import assert from 'node:assert/strict';
import { isIPv4, isIPv6, SocketAddress } from 'node:net';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { hostMatches } from './host-match.ts';
import { canonicalHost, hostnamesOf, parseIp, splitHosts } from './hosts.ts';
import { formatIp } from './ip.ts';

describe('5.6 IP literals', () => {
  const table: [string, string | undefined][] = [
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['010.0.0.1', undefined],
    ['1.2.3.00', undefined],
    ['256.0.0.1', undefined],
    ['1.2.3', undefined],
    ['1.2.3.4.5', undefined],
    ['1.2.3.', undefined],
    ['1..3.4', undefined],
    [' 1.2.3.4', undefined],
    ['1.2.3.4 ', undefined],
    ['1.2.3.-4', undefined],
    ['1.2.3.0x4', undefined],
    ['', undefined],
    ['localhost', undefined],
    ['::', '::'],
    ['::1', '::1'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['2001:DB8::A', '2001:db8::a'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1::', '1::'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:0201', '192.0.2.1'],
    ['::192.0.2.1', '::c000:201'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304'],
    ['fe80::1%eth0', undefined],
    ['fe80::1%', undefined],
    ['::ffff:010.0.0.1', undefined],
    ['1:2:3:4:5:6:7:8::', undefined],
    ['::1:2:3:4:5:6:7:8', undefined],
    ['1:2:3:4:5:6:7', undefined],
    ['1:2:3:4:5:6:7:8:9', undefined],
    ['1:2:3:4:5:6:7:1.2.3.4', undefined],
    ['1.2.3.4::', undefined],
    ['1.2.3.4:1::', undefined],
    ['::1::', undefined],
    [':::', undefined],
    ['1:::2', undefined],
    [':1', undefined],
    ['1:', undefined],
    [':', undefined],
    ['12345::', undefined],
    ['g::', undefined],
    ['[::1]', undefined],
    ['::1/128', undefined],
    ['::1:', undefined],
  ];
  for (const [text, canonical] of table) {
    it(`${JSON.stringify(text)} ${canonical === undefined ? 'is no IP' : `is ${canonical}`}`, () => {
      assert.equal(canonicalHost(text), canonical ?? text);
      assert.equal(parseIp(text) === undefined, canonical === undefined);
    });
  }

  const near = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc
      .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.constantFrom('%eth0', '%', ' ', '0', ':', '.', '::', 'x'))
      .map(p => p.join('')),
    fc.tuple(fc.constantFrom('0', '00', ':', '::ffff:', ' '), fc.oneof(fc.ipV4(), fc.ipV6())).map(p => p.join('')),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdefF:.%'.split('')), maxLength: 45 }),
  );
  it('agrees with node on everything but zone ids', () => {
    fc.assert(
      fc.property(near, text => {
        const expected = (isIPv4(text) || isIPv6(text)) && !text.includes('%');
        assert.equal(parseIp(text) !== undefined, expected, text);
      }),
      { numRuns: 2000 },
    );
  });
  it('canonical text parses to the same bytes and is a fixed point', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.uint8Array({ minLength: 16, maxLength: 16 })),
        bytes => {
          const text = formatIp(bytes);
          assert.equal(canonicalHost(text), text);
          assert.equal(text, text.toLowerCase());
          const back = parseIp(text)!;
          assert.ok(back.equals(bytes) || back.equals(bytes.subarray(12)));
        },
      ),
    );
  });
  it('canonical text is the one node prints', () => {
    const sparse = fc.array(fc.constantFrom('0', '0', '1', 'ab', 'ffff'), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(sparse, groups => {
        const text = groups.join(':');
        const expected = new SocketAddress({ address: text, family: 'ipv6' }).address;
        if (!expected.includes('.')) assert.equal(canonicalHost(text), expected);
      }),
      { numRuns: 500 },
    );
  });
});

describe('5.6 host names and SANs', () => {
  it('the example of the specification', () => {
    assert.deepEqual(splitHosts(['localhost', '127.0.0.1', '::1']), {
      commonName: '127.0.0.1',
      dnsNames: ['localhost', '127.0.0.1', '::1'],
      ipAddresses: ['127.0.0.1', '::1'],
    });
  });
  it('CN is the first in byte order, as given', () => {
    assert.equal(splitHosts(['b.example', '2001:DB8::A']).commonName, '2001:DB8::A');
    assert.equal(splitHosts(['b', 'B', 'a']).commonName, 'B');
    assert.equal(splitHosts(['foo', '*.apps.example.com']).commonName, '*.apps.example.com');
    assert.equal(splitHosts([]).commonName, '');
  });
  it('zone ids and leading zeros make DNS names', () => {
    assert.deepEqual(splitHosts(['fe80::1%eth0', '010.0.0.1']), {
      commonName: '010.0.0.1',
      dnsNames: ['010.0.0.1', 'fe80::1%eth0'],
      ipAddresses: [],
    });
  });
  it('two spellings of an address are one', () => {
    const { dnsNames, ipAddresses } = splitHosts(['::1', '0:0:0:0:0:0:0:1', '::ffff:10.0.0.1', '10.0.0.1']);
    assert.deepEqual(ipAddresses, ['::1', '10.0.0.1']);
    assert.deepEqual(dnsNames, ['::1', '10.0.0.1']);
  });
  it('14.19 the hosts are read once', () => {
    let reads = 0;
    const hosts = {
      *[Symbol.iterator]() {
        reads++;
        yield* ['b', 'a'];
      },
    };
    splitHosts(hosts);
    assert.equal(reads, 1);
  });
  it('the annotation: addresses and names, once each, in byte order', () => {
    const hosts = splitHosts(['localhost', '127.0.0.1', '::1']);
    assert.equal(hostnamesOf(hosts).join(','), '127.0.0.1,::1,localhost');
  });
  it('14.7 the annotation holds exactly the canonical form of what was asked for', () => {
    const host = fc.oneof(
      fc.domain(),
      fc.ipV4(),
      fc.ipV6(),
      fc.ipV6().map(ip => ip.toUpperCase()),
    );
    fc.assert(
      fc.property(fc.array(host, { maxLength: 8 }), hosts => {
        const annotated = hostnamesOf(splitHosts(hosts));
        assert.deepEqual(new Set(annotated), new Set(hosts.map(canonicalHost)));
        assert.equal(new Set(annotated).size, annotated.length);
        assert.deepEqual(annotated, [...annotated].sort());
        assert.deepEqual(splitHosts([...hosts].reverse()), splitHosts(hosts));
      }),
    );
  });
});

describe('host matching', () => {
  const certificate = {
    dnsNames: [
      'example.com',
      '*.apps.example.com',
      'UPPER.example.com',
      'a_b.example',
      '10.0.0.1',
      'odd name',
      'w*.example.com',
      '*',
    ],
    ipAddresses: ['127.0.0.1', '::1', '192.0.2.1'],
  };
  const table: [string, boolean][] = [
    ['example.com', true],
    ['EXAMPLE.com', true],
    ['example.com.', true],
    ['sub.example.com', false],
    ['x.apps.example.com', true],
    ['X.APPS.example.com.', true],
    ['apps.example.com', false],
    ['x.y.apps.example.com', false],
    ['.apps.example.com', false],
    ['upper.example.com', true],
    ['a_b.example', true],
    ['127.0.0.1', true],
    ['[::1]', true],
    ['0:0:0:0:0:0:0:1', true],
    ['::ffff:192.0.2.1', true],
    ['127.0.0.2', false],
    ['10.0.0.1', false],
    ['odd name', true],
    ['www.example.com', false],
    ['w*.example.com', true],
    ['localhost', false],
    ['', false],
    ['.', false],
  ];
  for (const [host, expected] of table) {
    it(`${JSON.stringify(host)} ${expected ? 'matches' : 'does not match'}`, () => {
      assert.equal(hostMatches(certificate, host), expected);
    });
  }
});
