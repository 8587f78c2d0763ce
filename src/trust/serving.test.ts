import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secret } from './object.ts';
import { type ServedCertificates, servedCertificate } from './serving.ts';

const [fallback, first, second, explicit] = ['fallback', 'first', 'second', 'explicit'].map(name =>
  secret('ns', name),
) as [ReturnType<typeof secret>, ReturnType<typeof secret>, ReturnType<typeof secret>, ReturnType<typeof secret>];
const served: ServedCertificates = {
  fallback,
  named: [
    { object: first, names: ['a.example', '127.0.0.1', 'shared.example'] },
    { object: second, names: ['a.example', '*.wild.example', 'shared.example'] },
    { object: explicit, names: ['shared.example'], isExplicit: true },
  ],
};

for (const [asked, address, wanted, why] of [
  ['a.example', undefined, first, 'the earlier of two that are good for a name has it'],
  ['A.Example.', undefined, first, 'case and a closing dot do not matter'],
  ['x.wild.example', undefined, second, 'a wildcard stands for the first label'],
  ['y.x.wild.example', undefined, fallback, 'and for no more than that'],
  ['shared.example', undefined, explicit, 'names from the configuration outweigh those inside certificates'],
  ['unknown.example', undefined, fallback, 'nobody knows the name'],
  ['127.0.0.1', '10.0.0.1', fallback, 'an address is not sent as a name; the address of the server is not listed'],
  ['127.0.0.1', '127.0.0.1', first, 'the address of the server is listed'],
  ['', '::ffff:127.0.0.1', first, 'also in its other form'],
  ['wild.example', undefined, fallback, 'the wildcard does not stand for nothing'],
] as const) {
  test(`${asked || 'no name'} at ${address ?? 'some address'}: ${why}`, () => {
    assert.equal(servedCertificate(served, { serverName: asked, address }), wanted);
  });
}
