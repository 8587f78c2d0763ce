/**
 * Longest time a test waits for something that happens by itself. It only bounds how long a test that fails takes: a machine that is slow,
 * busy or stopped for a while does not come near it.
 */
export const PATIENCE_MS = 10 * 60_000;
/** The same in a file that has waited in vain before. It has failed; what else is broken is to be told soon. */
const LESS_PATIENCE_MS = 60_000;
/** How soon it is looked again, at first. */
const LOOK_EVERY_MS = 20;
/** What has taken long may take a little longer: looking costs the machine that everything waits for. */
const LATER_SHARE = 0.02;
const LOOK_AT_LEAST_EVERY_MS = 200;

let hasWaitedInVain = false;

type Find<T> = () => Promise<T | undefined | false> | T | undefined | false;
type Detail = () => string | Promise<string>;

/**
 * Looks again and again until `find` gives something; what happens in the background has no signal to wait for. In vain, it says what was
 * waited for, and the detail.
 */
export async function eventually<T>(
  what: string,
  find: Find<T>,
  detail: Detail = () => '',
  everyMs?: number,
): Promise<T> {
  const began = performance.now();
  const giveUpAt = began + patienceMs();
  for (;;) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    const now = performance.now();
    if (now > giveUpAt) throw await inVain(what, detail);
    await new Promise(resolve => setTimeout(resolve, everyMs ?? pauseMs(now - began)));
  }
}

function pauseMs(waitedMs: number): number {
  return Math.min(Math.max(LOOK_EVERY_MS, waitedMs * LATER_SHARE), LOOK_AT_LEAST_EVERY_MS);
}

/** The same where a look may fail until all is well. */
export async function eventuallyDespiteErrors<T>(what: string, find: Find<T>, detail: Detail = () => ''): Promise<T> {
  let last = '';
  const look = async () => {
    try {
      return await find();
    } catch (error) {
      last = error instanceof Error ? `${error.name}: ${error.message}` : JSON.stringify(error);
      return undefined;
    }
  };
  return eventually(what, look, async () => `${await detail()}\n${last}`);
}

/** What is promised, such as the end of a process; waited for as long as anything else. */
export async function inTime<T>(what: string, promised: Promise<T>, detail: Detail = () => ''): Promise<T> {
  const { promise: timeUp, resolve } = Promise.withResolvers<typeof LATE>();
  const timer = setTimeout(resolve, patienceMs(), LATE);
  try {
    const first = await Promise.race([promised, timeUp]);
    if (first === LATE) throw await inVain(what, detail);
    return first;
  } finally {
    clearTimeout(timer);
  }
}

const LATE = Symbol('late');

function patienceMs(): number {
  return hasWaitedInVain ? LESS_PATIENCE_MS : PATIENCE_MS;
}

async function inVain(what: string, detail: Detail): Promise<Error> {
  hasWaitedInVain = true;
  return new Error(`waited in vain for: ${what}\n${await detail()}`.trimEnd());
}
