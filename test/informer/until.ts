/** Longest time a test waits for something that happens by itself. */
const PATIENCE_MS = 180_000;
const LOOK_EVERY_MS = 5;

/** Waits until a condition holds; the limit only bounds how long a failing test takes. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpMs = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > giveUpMs) throw new Error(`waited ${PATIENCE_MS / 1000} s in vain until ${what}`);
    await new Promise(resolve => {
      setTimeout(resolve, LOOK_EVERY_MS);
    });
  }
}
