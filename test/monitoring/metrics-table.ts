/** The table of metrics in docs/operations.md: `node test/monitoring/metrics-table.ts` prints it, a test compares the two. */
import { exportedMetrics } from './exported.ts';

export function metricsTable(): string {
  const rows = [...exportedMetrics()].flatMap(([program, metrics]) =>
    metrics.map(
      ({ name, type, labels, help }) =>
        `| \`${name}\` | ${type} | ${labels.join(', ') || '-'} | ${program} | ${help} |`,
    ),
  );
  return ['| metric | type | labels | exported by | meaning |', '|---|---|---|---|---|', ...rows].join('\n');
}

if (import.meta.main) console.log(metricsTable());
