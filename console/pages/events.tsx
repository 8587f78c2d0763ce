import { useState } from 'preact/hooks';
import { itemsOf } from '../live.ts';
import { matches, Search, Select, Toolbar } from '../parts/filter.tsx';
import { Label } from '../parts/label.tsx';
import { Table } from '../parts/table.tsx';
import { Relative, useNow } from '../parts/time.tsx';
import type { PageProps } from './page.ts';

/** What the cluster says of itself, the newest first. */
export function Events({ model, route }: PageProps) {
  const now = useNow();
  const [search, setSearch] = useState(route.query.get('search') ?? '');
  const [type, setType] = useState('');
  const events = itemsOf(model, 'events').toSorted((a, b) => (a.lastAt < b.lastAt ? 1 : -1));
  const found = events.filter(
    event =>
      (type === '' || event.type === type) &&
      matches(search, event.reason, event.message, event.metadata.namespace, event.source, event.about),
  );
  return (
    <>
      <Toolbar>
        <Search label="Search" value={search} onChange={setSearch} />
        <Select
          label="Type"
          value={type}
          onChange={setType}
          options={[
            ['', 'All types'],
            ['Normal', 'Normal'],
            ['Warning', 'Warning'],
          ]}
        />
      </Toolbar>
      <p class="count" role="status">
        {found.length} of {events.length}
      </p>
      <Table
        caption="Events"
        empty="No events."
        items={found}
        id={({ metadata }) => `${metadata.namespace}/${metadata.name}`}
        columns={[
          { title: 'When', cell: ({ lastAt }) => <Relative at={lastAt} now={now} /> },
          {
            title: 'Type',
            cell: event => (
              <Label
                tone={event.type === 'Warning' ? 'warn' : 'plain'}
                icon={event.type === 'Warning' ? 'warning' : 'info'}
              >
                {event.type}
              </Label>
            ),
          },
          {
            title: 'Reason',
            sort: ({ reason }) => reason,
            cell: ({ reason, count }) => (
              <>
                {reason} {count > 1 && <span class="sub">x{count}</span>}
              </>
            ),
          },
          {
            title: 'Source',
            sort: ({ source }) => source,
            cell: ({ source, metadata }) => (
              <>
                {source}
                <div class="sub">{metadata.namespace}</div>
              </>
            ),
          },
          { title: 'Message', cell: ({ message }) => <span class="break">{message}</span> },
        ]}
      />
    </>
  );
}
