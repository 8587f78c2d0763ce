/** Breaks a line at blanks so that it fits; what follows is set in as far as the text of the first line. */
export function wrap(line: string, width = 80): string {
  const [lead = ''] = /^(?:\d \S+ +)?/.exec(line) ?? [];
  const indent = ' '.repeat(lead.length);
  const lines: string[] = [];
  let current = '';
  for (const word of line.slice(lead.length).split(' ')) {
    const longer = current === '' ? word : `${current} ${word}`;
    if (lead.length + longer.length > width && current !== '') {
      lines.push(current);
      current = word;
    } else current = longer;
  }
  lines.push(current);
  return lines.map((text, i) => `${i === 0 ? lead : indent}${text}`.trimEnd()).join('\n');
}
