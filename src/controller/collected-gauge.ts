import { Gauge, type LabelValues, type Registry } from '@prometheus-io/client';

export interface CollectedGauge<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly Label[] | undefined;
  /** All series with their values, at the moment somebody asks. */
  readonly values: () => Iterable<readonly [labels: LabelValues<Label>, value: number]>;
}

/** A gauge that is worked out when it is asked for; series that are no longer there go away. */
export function collectGauge<Label extends string>(registry: Registry, gauge: CollectedGauge<Label>): void {
  const { name, help, labels = [], values } = gauge;
  registry.registerMetric(
    new Gauge({
      name,
      help,
      labelNames: labels,
      registers: [],
      collect() {
        this.reset();
        for (const [series, value] of values()) this.set(series, value);
      },
    }),
  );
}
