import assert from 'node:assert/strict';
import { test } from 'node:test';
import { element, oid, sequence, setOf, TAG } from '../pki/der-write.ts';
import { distinguishedName } from './distinguished-name.ts';

type Attribute = readonly [type: string, value: string];
const name = (...rdns: readonly Attribute[][]) =>
  sequence(
    ...rdns.map(rdn =>
      setOf(rdn.map(([type, value]) => sequence(oid(type), element(TAG.utf8String, Buffer.from(value))))),
    ),
  );

const CASES: readonly [what: string, der: Buffer, text: string][] = [
  [
    'the fixed order, whatever the order inside',
    name([['2.5.4.10', 'O1']], [['2.5.4.3', 'cn']], [['2.5.4.11', 'OU1']]),
    'CN=cn,OU=OU1,O=O1',
  ],
  [
    'all that have a name',
    name(
      [['2.5.4.6', 'DE']],
      [['2.5.4.8', 'st']],
      [['2.5.4.7', 'l']],
      [['2.5.4.9', 's']],
      [['2.5.4.17', 'p']],
      [['2.5.4.5', 'n']],
    ),
    'SERIALNUMBER=n,POSTALCODE=p,STREET=s,ST=st,L=l,C=DE',
  ],
  [
    'several values',
    name([
      ['2.5.4.10', 'a'],
      ['2.5.4.10', 'b'],
    ]),
    'O=a+O=b',
  ],
  ['the last of two common names', name([['2.5.4.3', 'a']], [['2.5.4.3', 'b']]), 'CN=b'],
  [
    'what has no name, as hex at the end',
    name([['1.2.840.113549.1.9.1', 'a@b']], [['2.5.4.3', 'x']]),
    'CN=x,1.2.840.113549.1.9.1=#0c03614062',
  ],
  ['printable text as hex', name([['1.2.3', 'ab']]), '1.2.3=#13026162'],
  ['what must be escaped', name([['2.5.4.3', '#a,b+"c"\\<>; ']]), 'CN=\\#a\\,b\\+\\"c\\"\\\\\\<\\>\\;\\ '],
  ['a leading blank', name([['2.5.4.3', ' x']]), 'CN=\\ x'],
  ['nothing', name(), ''],
];

for (const [what, der, text] of CASES) test(what, () => assert.equal(distinguishedName(der), text));
