import type { PartReport } from '../../local/part-board.ts';

export interface ProgressOutput {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
}

/** Shows what is coming up and what it waits for: lines that change in place on a terminal, a line for every change elsewhere. */
export class Progress {
  readonly #output: ProgressOutput;
  readonly #startedMs: number;
  readonly #nowMs: () => number;
  #shown: readonly PartReport[] = [];
  #lines = 0;

  constructor(output: ProgressOutput, nowMs: () => number = () => performance.now()) {
    this.#output = output;
    this.#nowMs = nowMs;
    this.#startedMs = nowMs();
  }

  show(parts: readonly PartReport[]): void {
    if (this.#output.isTTY === true) this.#redraw(parts);
    else for (const part of parts) if (!this.#isShown(part)) this.#output.write(`${this.#line(part, 0)}\n`);
    this.#shown = parts;
  }

  /** Something that is said once, above the lines that change. */
  say(text: string): void {
    this.#erase();
    this.#output.write(`${text}\n`);
    if (this.#output.isTTY === true) this.#redraw(this.#shown);
  }

  /** Leaves what is shown where it is. */
  end(): void {
    this.#lines = 0;
    this.#shown = [];
  }

  #redraw(parts: readonly PartReport[]): void {
    this.#erase();
    const width = Math.max(...parts.map(({ name }) => name.length), 0);
    for (const part of parts) this.#output.write(`${this.#cut(this.#line(part, width))}\n`);
    this.#lines = parts.length;
  }

  #erase(): void {
    if (this.#lines > 0) this.#output.write(`\u001b[${this.#lines}A\u001b[J`);
    this.#lines = 0;
  }

  #isShown({ name, ready, text }: PartReport): boolean {
    const before = this.#shown.find(other => other.name === name);
    return before !== undefined && before.ready === ready && before.text === text;
  }

  #line({ name, ready, text }: PartReport, width: number): string {
    const seconds = ((this.#nowMs() - this.#startedMs) / 1000).toFixed(1).padStart(5);
    return `${seconds}s ${ready ? 'ok ' : '...'} ${name.padEnd(width)}  ${text}`;
  }

  /** A line that wraps would count as two and spoil the erasing. A terminal that does not know its width says 0. */
  #cut(text: string): string {
    return text.slice(0, Math.max(20, (this.#output.columns || 80) - 1));
  }
}
