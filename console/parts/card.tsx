import type { ComponentChildren } from 'preact';

/** A box with a heading. */
export function Card({
  title,
  wide = false,
  aside,
  children,
}: {
  title: string;
  wide?: boolean;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  const id = `card-${title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`;
  return (
    <section class={`card${wide ? ' wide' : ''}`} aria-labelledby={id}>
      <header class="card-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** Names and values. Rows without a value are left out. */
export function Facts({
  rows,
  isStacked = false,
}: {
  rows: readonly (readonly [string, ComponentChildren])[];
  isStacked?: boolean;
}) {
  const present = rows.filter(([, value]) => value !== undefined && value !== '' && value !== false);
  return (
    <dl class={`facts${isStacked ? ' stacked' : ''}`}>
      {present.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
