/** One step of an update. Both directions may be repeated, and `undo` also takes back half of a step. */
export interface Step {
  readonly name: string;
  run(): Promise<void>;
  undo?(): Promise<void>;
}

/** A step failed. What the steps before it had done was taken back, newest first (spec 60, 8.1). */
export class UpdateError extends Error {
  override readonly name = 'UpdateError';
  readonly step: string;
  /** Completed steps that were undone, in that order. The failed step has cleaned up after itself. */
  readonly rolledBack: readonly string[];
  readonly undoErrors: readonly Error[];

  constructor(step: string, cause: Error, { rolledBack, undoErrors }: Undone) {
    const undo = undoErrors.map(error => `; undo failed: ${error.message}`).join('');
    super(`${cause.message}${undo}`, { cause });
    this.step = step;
    this.rolledBack = rolledBack;
    this.undoErrors = undoErrors;
  }
}

export interface Undone {
  readonly rolledBack: readonly string[];
  readonly undoErrors: readonly Error[];
}

/** Runs steps in order. When one fails, `beforeUndo` is called and everything is taken back; throws `UpdateError`. */
export async function runSteps(steps: readonly Step[], beforeUndo: () => Promise<void>): Promise<void> {
  for (const [index, step] of steps.entries()) {
    try {
      await step.run();
    } catch (error) {
      await beforeUndo();
      const own = await undoSteps([step]);
      const { rolledBack, undoErrors } = await undoSteps(steps.slice(0, index));
      throw new UpdateError(step.name, asError(error), { rolledBack, undoErrors: [...own.undoErrors, ...undoErrors] });
    }
  }
}

/** Takes back steps, newest first. One that cannot be taken back does not keep the others from it. */
export async function undoSteps(steps: readonly Step[]): Promise<Undone> {
  const rolledBack: string[] = [];
  const undoErrors: Error[] = [];
  for (const { name, undo } of steps.toReversed()) {
    if (undo === undefined) continue;
    try {
      await undo();
      rolledBack.push(name);
    } catch (error) {
      undoErrors.push(asError(error));
    }
  }
  return { rolledBack, undoErrors };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
