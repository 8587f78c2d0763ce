/** Lets one caller at a time work on an object; others wait in order (spec 10, W-5). */
export class ObjectLocks {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(object: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(object) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#last.set(object, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(object) === mine) this.#last.delete(object);
    }
  }
}
