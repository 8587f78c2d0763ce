/** Thrown when there are no steps left. */
export class BudgetSpent extends Error {
  override readonly name = 'BudgetSpent';
}

/** Steps that work on one request may take: it ends here, not when the machine is tired. */
export class Budget {
  readonly #steps: number;
  readonly #whole: Budget | undefined;
  #left: number;

  /** With `whole`, steps are taken off that one too. */
  constructor(steps: number, whole?: Budget) {
    this.#steps = steps;
    this.#whole = whole;
    this.#left = steps;
  }

  get used(): number {
    return this.#steps - this.#left;
  }

  /** Takes steps off; throws when there are none left. */
  spend(steps: number): void {
    this.#left -= steps;
    this.#whole?.spend(steps);
    if (this.#left < 0) throw new BudgetSpent('operation cancelled: actual cost limit exceeded');
  }
}
