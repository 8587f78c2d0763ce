import { join } from 'node:path';
import { startEngine } from '../../src/api/engine.ts';
import { checksumOf } from '../../src/api/store/checksum.ts';
import { openSqliteJournal } from '../../src/api/store/sqlite.ts';
import { Store } from '../../src/api/store/store.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { NAMESPACES, SECRETS } from '../../src/kube/resource.ts';
import { percentile, rateOf } from './measure.ts';
import { NAMESPACE, secret } from './secret.ts';

const WRITERS = [1, 64];
const WRITE_MS = 800;
const ROUNDS = 7;
const OPENINGS = 7;

/** With the checksums of the product, and with none. */
const SIDES = { on: checksumOf, off: () => ({ head: 0, body: 0 }) };
type Side = keyof typeof SIDES;

/** What the checksums of stored objects cost: durable creates in process, and opening the store again. */
export async function checksums(dir: string): Promise<void> {
  const journal = (side: Side) => openSqliteJournal(join(dir, `checksums-${side}`, 'store.sqlite'), SIDES[side]);
  console.log('\nchecksums of stored objects, on and off in turn');
  const engines = {
    on: await startEngine({ journal: journal('on') }),
    off: await startEngine({ journal: journal('off') }),
  };
  for (const { kube } of Object.values(engines)) await kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  let count = 0;
  for (const writers of WRITERS) {
    const perSecond = await inTurn(ROUNDS, async side => {
      const write = () => engines[side].kube.create(SECRETS, secret(`s-${count++}`));
      return (await rateOf(writers, WRITE_MS, write)).perSecond;
    });
    print(`creates a second in process, ${writers} at once`, perSecond);
  }
  for (const engine of Object.values(engines)) await engine.close();
  const perSecond = await inTurn(OPENINGS, async side => {
    const begun = performance.now();
    const store = new Store({ clock: systemClock, journal: journal(side) });
    const seconds = (performance.now() - begun) / 1000;
    const objects = store.count('/secrets');
    store.close();
    return objects / seconds;
  });
  print('objects a second when opened', perSecond);
}

async function inTurn(rounds: number, measure: (side: Side) => Promise<number>): Promise<Record<Side, number>> {
  const values: Record<Side, number[]> = { on: [], off: [] };
  for (let round = 0; round < rounds; round++) {
    // Who comes first changes, so that being first is nobody's advantage.
    const order: Side[] = round % 2 === 0 ? ['on', 'off'] : ['off', 'on'];
    for (const side of order) values[side].push(await measure(side));
  }
  return { on: percentile(values.on, 50), off: percentile(values.off, 50) };
}

function print(what: string, { on, off }: Record<Side, number>): void {
  console.log(`${what.padEnd(40)} on ${on.toFixed(0)}, off ${off.toFixed(0)}: ${(on / off).toFixed(2)}x`);
}
