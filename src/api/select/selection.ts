import type { KubeObject } from '../../kube/resource.ts';
import { type FieldQuery, matchesFields, parseFieldSelector } from './field.ts';
import { type LabelQuery, matchesLabels, parseLabelSelector } from './label.ts';
import type { SelectableFields } from './selectable.ts';

/** What a list, a watch or a deletion of a collection selects. */
export interface Selection {
  readonly labels: LabelQuery;
  readonly fields: FieldQuery;
  /** Nothing was asked for: every object matches. */
  readonly everything: boolean;
  matches(object: KubeObject): boolean;
}

export interface SelectionRequest {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly selectable: SelectableFields;
}

/** Reads both selectors of a request once. Throws `KubeError` 400 for a bad one. */
export function selection(request: SelectionRequest): Selection {
  const labels = parseLabelSelector(request.labelSelector ?? '');
  const fields = parseFieldSelector(request.fieldSelector ?? '', request.selectable);
  return {
    labels,
    fields,
    everything: labels.length === 0 && fields.length === 0,
    matches: object => matchesLabels(labels, object.metadata?.labels) && matchesFields(fields, object),
  };
}
