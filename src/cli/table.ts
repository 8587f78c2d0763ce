/** Columns as wide as their widest cell, three blanks between, the way kubectl prints tables. */
export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...lines.map(line => visible(line[column]).length)));
  return lines
    .map(
      line =>
        line
          .map((cell, column) => visible(cell).padEnd(widths[column] as number))
          .join('   ')
          .trimEnd() + '\n',
    )
    .join('');
}

/** Control characters from foreign objects must not reach a terminal. */
export function visible(cell: string | undefined): string {
  // oxlint-disable-next-line no-control-regex -- removing them is the point
  return (cell ?? '').replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
}
