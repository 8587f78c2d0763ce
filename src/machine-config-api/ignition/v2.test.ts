import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readIgnition } from './read.ts';
import { IgnitionError } from './types.ts';
import { deduplicated } from './v2.ts';

describe('equal units of spec 2 (RN-12)', () => {
  const dropin = (name: string, contents: string) => ({ name, contents });
  const document = (units: { name: string; dropins: object[] }[]) =>
    ({ ignition: { version: '2.2.0' }, systemd: { units } }) as Parameters<typeof deduplicated>[0];

  test('the last one keeps its drop-ins, and gets of older ones what it does not have, the younger first', () => {
    const config = document([
      { name: 'a.service', dropins: [dropin('x.conf', '1'), dropin('z.conf', '1')] },
      { name: 'a.service', dropins: [dropin('x.conf', '2'), dropin('y.conf', '2')] },
      { name: 'a.service', dropins: [dropin('x.conf', '3')] },
    ]);
    const [unit, ...more] = deduplicated(config).systemd?.units ?? [];
    assert.deepEqual(unit?.dropins, [dropin('x.conf', '3'), dropin('y.conf', '2'), dropin('z.conf', '1')]);
    assert.deepEqual(more, []);
  });

  test('two of a name in one unit are not collected but refused', () => {
    const config = document([{ name: 'a.service', dropins: [dropin('x.conf', '1'), dropin('x.conf', '2')] }]);
    assert.equal(deduplicated(config).systemd?.units?.[0]?.dropins?.length, 2);
    assert.throws(() => readIgnition(config), IgnitionError);
  });
});
