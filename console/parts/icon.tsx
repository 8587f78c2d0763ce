const PATHS = {
  ok: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm3.7 5.2-4.3 5a.9.9 0 0 1-1.3.1L4 9.2l1.1-1.3 1.6 1.5 3.7-4.3Z',
  warning: 'M8 1 .6 14.5h14.8ZM7.1 6h1.8v4.4H7.1Zm0 5.3h1.8V13H7.1Z',
  error: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1ZM7.1 4h1.8v5H7.1Zm0 6.2h1.8V12H7.1Z',
  info: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm-.9 3h1.8v1.8H7.1Zm0 3h1.8v5H7.1Z',
  clock: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm.8 7.6-3.5 2-.8-1.4 2.7-1.5V3.8h1.6Z',
  moving:
    'M8 2a6 6 0 0 1 5.6 3.9l1.6-.9-.6 4.6-4.3-1.7 1.6-.9A4.1 4.1 0 0 0 4 6.9L2.3 6.2A6 6 0 0 1 8 2Zm0 12a6 6 0 0 1-5.6-3.9L.8 11l.6-4.6 4.3 1.7-1.6.9a4.1 4.1 0 0 0 7.9.1l1.7.7A6 6 0 0 1 8 14Z',
  pause: 'M4 2.5h3v11H4Zm5 0h3v11H9Z',
  none: 'M3 7h10v2H3Z',
  key: 'M10.5 1a4.5 4.5 0 0 0-4.3 5.8L1 12v3h3.5v-2H6v-1.5h1.5L9.2 9.8A4.5 4.5 0 1 0 10.5 1Zm1 2.5a1.2 1.2 0 1 1 0 2.4 1.2 1.2 0 0 1 0-2.4Z',
  bundle: 'M8 1 1 4.5 8 8l7-3.5ZM1 7.6v1.9L8 13l7-3.5V7.6L8 11.1Zm0 3.6V13l7 3 7-3v-1.8L8 14.6Z',
  leaf: 'M3 1h7l3 3v11H3Zm2 6v1.5h6V7Zm0 3v1.5h6V10ZM5 4v1.5h3V4Z',
  process: 'M1 3h14v10H1Zm1.6 3v5.4h10.8V6Z',
  menu: 'M1 3h14v2H1Zm0 4h14v2H1Zm0 4h14v2H1Z',
  theme: 'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 1.8v10.4a5.2 5.2 0 0 1 0-10.4Z',
} as const;

export type IconName = keyof typeof PATHS;

/** A sign that goes with a word; never alone. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
