/**
 * Two controllers in two processes (no shared lock, no shared cache) over the same signer and bundle, in every order in
 * which their API calls can meet. Between calls a controller touches nothing that others see, so these orders are all
 * there are.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { days } from '../kube/duration.ts';
import { MemoryKube } from '../kube/memory.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, type ObjectKey, SECRETS } from '../kube/resource.ts';
import { readCertificates } from '../pki/pem.ts';
import { ISSUER } from './annotations.ts';
import { BUNDLE_KEY } from './bundle.ts';
import type { RotationUnit, SignerConfig } from './config.ts';
import { dataText, TLS_CERT } from './secret.ts';
import { ensureSigner } from './signer.ts';
import { NOW, secretOf, testCA, testRotation, UNIT } from './testing.ts';
import { syncUnit } from './unit.ts';

const OTHER_TARGET: RotationUnit = { ...UNIT, name: 'Other', target: { ...UNIT.target, name: 'other-target' } };
const recoveryMode = { refreshOnlyWhenExpired: true };
const RECOVERY: RotationUnit = {
  name: 'Recovery',
  signer: { ...UNIT.signer, ...recoveryMode },
  bundle: { ...UNIT.bundle, ...recoveryMode },
  target: { ...UNIT.target, ...recoveryMode },
};

describe('two controllers, every interleaving of their API calls', () => {
  const scenarios: {
    name: string;
    units: [RotationUnit, RotationUnit];
    ageDays: number | undefined;
  }[] = [
    { name: 'cold start of the same unit', units: [UNIT, UNIT], ageDays: undefined },
    {
      name: 'cold start of two units that share a signer',
      units: [UNIT, OTHER_TARGET],
      ageDays: undefined,
    },
    { name: 'a signer that is due, two units share it', units: [UNIT, OTHER_TARGET], ageDays: 16 },
    {
      name: 'operator and recovery process after everything expired',
      units: [UNIT, RECOVERY],
      ageDays: 40,
    },
  ];
  for (const { name, units, ageDays } of scenarios) {
    test(`${name}: one new signer, no bundle entry lost`, async () => {
      const seen = await everyOrder(order => runOnce(units, ageDays, order));
      assert.ok(seen > 50, `only ${seen} orders were possible`);
    });
  }

  test('a signer of the wrong type, which has to be made anew: the same key, and nothing stays behind', async () => {
    const ca = secretOf(await testCA('ns_signer@1'));
    const seen = await everyOrder(order => retype({ ...ca, type: 'Opaque' }, [UNIT.signer, UNIT.signer], order));
    assert.ok(seen > 50, `only ${seen} orders were possible`);
  });

  test('one makes a signer anew, a recovery process finds it missing: it makes no signer of its own', async () => {
    const ca = secretOf(await testCA('ns_signer@1'));
    const seen = await everyOrder(order => retype({ ...ca, type: 'Opaque' }, [UNIT.signer, RECOVERY.signer], order));
    assert.ok(seen > 5, `only ${seen} orders were possible`);
  });
});

async function retype(stored: Secret, configs: SignerConfig[], order: Order): Promise<void> {
  const store = new MemoryKube();
  await store.create(SECRETS, stored);
  const turns = new Turns(configs.length, order);
  const pass = async (config: SignerConfig, task: number) => {
    const result = await ensureSigner(config, testRotation(turns.gate(store, task)));
    assert.ok(result.outcome === 'lost' || !result.regenerated, 'nobody makes a new signer');
    turns.finish(task);
  };
  await Promise.all([...configs.map(pass), turns.drive()]);
  for (let round = 0; round < 2; round++) await ensureSigner(UNIT.signer, testRotation(store));
  const { items } = await store.list(SECRETS, { namespace: 'ns' });
  assert.deepEqual(
    items.map(({ metadata, type, data }) => [metadata?.name, type, data]),
    [['signer', 'kubernetes.io/tls', stored.data]],
  );
}

async function runOnce(units: [RotationUnit, RotationUnit], ageDays: number | undefined, order: Order): Promise<void> {
  const store = new MemoryKube();
  let startAt = NOW;
  if (ageDays !== undefined) {
    for (const unit of units) await syncUnit(unit, testRotation(store));
    startAt = new Date(NOW.getTime() + days(ageDays));
  }
  const watcher = new Watcher(store, startAt);
  await watcher.look();
  const signersBefore = watcher.signers.size;
  const turns = new Turns(units.length, order);
  const pass = async (unit: RotationUnit, task: number) => {
    // Nobody sets a Secret aside here, so it does not matter when somebody looks for one.
    const rotation = testRotation(turns.gate(watcher.watched(), task, isSetAside));
    rotation.clock.jumpTo(startAt);
    await syncUnit(unit, rotation);
    turns.finish(task);
  };
  await Promise.all([...units.map(pass), turns.drive()]);
  // Whoever lost a write asks again; by then the other is done.
  for (const unit of [...units, ...units]) {
    const rotation = testRotation(watcher.watched());
    rotation.clock.jumpTo(startAt);
    await syncUnit(unit, rotation);
  }
  assert.equal(watcher.signers.size - signersBefore, 1, 'exactly one new signer was stored');
  for (const { target } of units) {
    const issuer = (await store.get(SECRETS, target)).metadata?.annotations?.[ISSUER];
    const bundle = readCertificates((await store.get(CONFIG_MAPS, UNIT.bundle)).data?.[BUNDLE_KEY] ?? '').certificates;
    assert.ok(
      bundle.some(({ subject }) => subject.commonName === issuer),
      'every target is trusted',
    );
  }
}

/** Looks at the store after each write: a trusted certificate may leave the bundle only when it has expired. */
class Watcher {
  readonly signers = new Set<string>();
  #trusted = new Map<string, Date>();
  readonly #store: MemoryKube;
  readonly #now: Date;

  constructor(store: MemoryKube, now: Date) {
    this.#store = store;
    this.#now = now;
  }

  watched(): Kube {
    return wrap(this.#store, async (_, call) => {
      const result = await call();
      await this.look();
      return result;
    });
  }

  async look(): Promise<void> {
    const { items: secrets } = await this.#store.list(SECRETS, { namespace: 'ns' });
    const signer = secrets.find(({ metadata }) => metadata?.name === 'signer');
    if (signer !== undefined) this.signers.add(dataText(signer, TLS_CERT) ?? '');
    const { items: bundles } = await this.#store.list(CONFIG_MAPS, { namespace: 'ns' });
    const trusted = new Map(
      bundles.flatMap(({ data }) =>
        readCertificates(data?.[BUNDLE_KEY] ?? '').certificates.map(({ der, notAfter }) => [
          der.toString('hex'),
          notAfter,
        ]),
      ),
    );
    for (const [der, notAfter] of this.#trusted) {
      assert.ok(trusted.has(der) || notAfter <= this.#now, 'a certificate left the bundle before it expired');
    }
    this.#trusted = trusted;
  }
}

/** A sequence of choices: who goes next when both wait. Choices beyond its end are 0, and are noted. */
interface Order {
  readonly choices: number[];
  position: number;
}

/** Tries every order by counting up the choices like an odometer. */
async function everyOrder(run: (order: Order) => Promise<void>): Promise<number> {
  let choices: number[] = [];
  for (let count = 1; ; count++) {
    const order = { choices, position: 0 };
    await run(order);
    choices = order.choices.slice(0, order.position);
    while (choices.at(-1) === 1) choices.pop();
    if (choices.length === 0) return count;
    choices[choices.length - 1] = 1;
  }
}

/** Lets one API call happen at a time, in the order chosen. */
class Turns {
  readonly #waiting = new Map<number, () => void>();
  readonly #order: Order;
  #running: number;
  #arrived = () => {};

  constructor(tasks: number, order: Order) {
    this.#running = tasks;
    this.#order = order;
  }

  gate(kube: Kube, task: number, isFree: (key: ObjectKey) => boolean = () => false): Kube {
    return wrap(kube, async (key, call) => {
      if (isFree(key)) return call();
      await new Promise<void>(resolve => {
        this.#waiting.set(task, resolve);
        this.#arrived();
      });
      return call();
    });
  }

  finish(_task: number): void {
    this.#running--;
    this.#arrived();
  }

  async drive(): Promise<void> {
    while (this.#running > 0) {
      while (this.#waiting.size < this.#running) {
        await new Promise<void>(resolve => {
          this.#arrived = resolve;
        });
      }
      if (this.#running === 0) return;
      const tasks = [...this.#waiting.keys()].sort((a, b) => a - b);
      const chosen = tasks[tasks.length > 1 ? this.#choose() : 0] as number;
      const go = this.#waiting.get(chosen);
      this.#waiting.delete(chosen);
      go?.();
    }
  }

  #choose(): number {
    const { choices, position } = this.#order;
    this.#order.position++;
    return (choices[position] ??= 0);
  }
}

function isSetAside(key: Partial<ObjectKey>): boolean {
  return (key.name ?? '').endsWith('.set-aside.rotunda.dev');
}

function wrap(kube: Kube, around: (key: ObjectKey, call: () => Promise<KubeObject>) => Promise<KubeObject>): Kube {
  return new Proxy(kube, {
    get(target, verb: 'get') {
      const method = target[verb] as (...args: unknown[]) => Promise<KubeObject>;
      return (...args: unknown[]) => around(args[1] as ObjectKey, () => method.apply(target, args));
    },
  });
}
