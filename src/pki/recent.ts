/**
 * What was read lately, by the texts it was read from: controllers look at the same few objects again and again, and reading a pair of
 * certificate and key costs half a millisecond. Bounded in number; what failed is read again. Values are shared, so they must be immutable.
 */
export class Recent<T> {
  readonly #limit: number;
  /** Whatever was used last stands last. */
  readonly #values = new Map<string, T>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string, read: () => T): T {
    const known = this.#values.get(key);
    const value = known ?? read();
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size > this.#limit) this.#values.delete(this.#values.keys().next().value as string);
    return value;
  }
}
