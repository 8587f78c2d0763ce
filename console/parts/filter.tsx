import type { ComponentChildren } from 'preact';

/** Controls above a list. */
export function Toolbar({ children }: { children: ComponentChildren }) {
  return <div class="toolbar">{children}</div>;
}

export function Search({
  value,
  onChange,
  label,
}: {
  value: string;
  onChange: (value: string) => void;
  label: string;
}) {
  return (
    <label class="field grow">
      <span>{label}</span>
      <input type="search" value={value} spellcheck={false} onInput={event => onChange(event.currentTarget.value)} />
    </label>
  );
}

export interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

export function Select({ label, value, options, onChange }: SelectProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={event => onChange(event.currentTarget.value)}>
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Whether all words of the search occur in the text. */
export function matches(search: string, ...texts: readonly (string | undefined)[]): boolean {
  const whole = texts.join(' ').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every(word => whole.includes(word));
}
