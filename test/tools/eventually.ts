/**
 * Longest time a test waits for something that happens by itself. It only bounds how long a test that fails takes: a machine that is slow,
 * busy or stopped for a while does not come near it.
 */
export const PATIENCE_MS = 10 * 60_000;
const LOOK_EVERY_MS = 20;

type Find<T> = () => Promise<T | undefined | false> | T | undefined | false;

/**
 * Looks again and again until `find` gives something; what happens in the background has no signal to wait for. In vain, it says what was
 * waited for, and the detail.
 */
export async function eventually<T>(
  what: string,
  find: Find<T>,
  detail: () => string | Promise<string> = () => '',
  everyMs = LOOK_EVERY_MS,
): Promise<T> {
  for (const giveUpAt = performance.now() + PATIENCE_MS; ; ) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > giveUpAt) throw new Error(`waited in vain for: ${what}\n${await detail()}`.trimEnd());
    await new Promise(resolve => setTimeout(resolve, everyMs));
  }
}

/** The same where a look may fail until all is well. */
export async function eventuallyDespiteErrors<T>(
  what: string,
  find: Find<T>,
  detail: () => string | Promise<string> = () => '',
): Promise<T> {
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
