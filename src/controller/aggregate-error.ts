/** Several failures of one pass (spec 30, 5.3). Its message is the list form. */
export class AggregateFailure extends Error {
  override readonly name = 'AggregateFailure';
  readonly errors: readonly unknown[];

  constructor(errors: readonly unknown[]) {
    super(listText(errors));
    this.errors = errors;
  }
}

/** Throws what is there: nothing, the one error as it is, or all of them as one. */
export function throwIfAny(errors: readonly unknown[]): void {
  const present = errors.filter(error => error !== undefined && error !== null);
  if (present.length === 1) throw present[0];
  if (present.length > 1) throw new AggregateFailure(present);
}

/** One message as it is, several as `[a, b]`, each once; what is not there is left out. */
export function listText(errors: readonly unknown[]): string {
  const texts = new Set(errors.filter(error => error !== undefined && error !== null).map(errorText));
  return texts.size === 1 ? ([...texts][0] as string) : texts.size === 0 ? '' : `[${[...texts].join(', ')}]`;
}

/** All messages in their order, one a line. */
export function lineText(errors: readonly unknown[]): string {
  return errors
    .filter(error => error !== undefined && error !== null)
    .map(errorText)
    .join('\n');
}

/** What a thrown value says. */
export function errorText(error: unknown): string {
  if (error instanceof Error) return error.message;
  return typeof error === 'string' ? error : (JSON.stringify(error) ?? String(error));
}
