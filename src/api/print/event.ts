import type { Event } from 'kubernetes-types/core/v1.d.ts';
import type { Event as RegardingEvent } from 'kubernetes-types/events/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { ageOf } from './age.ts';
import { NAME, printerOf, text, wideText } from './column.ts';

/** Events of `v1` and of `events.k8s.io/v1` have other names for the same things. */
export const eventPrinter = printerOf<KubeObject>([
  text('Last Seen', 'When the event was last seen.', (object, now) => ageOf(lastSeen(coreEvent(object)), now)),
  text('Type', 'Normal or Warning.', object => coreEvent(object).type),
  text('Reason', 'Why, in one word.', object => coreEvent(object).reason),
  text('Object', 'What the event is about.', object => targetOf(coreEvent(object))),
  wideText('Subobject', 'Which part of it.', object => coreEvent(object).involvedObject?.fieldPath),
  wideText('Source', 'Who reported it.', object => sourceOf(coreEvent(object))),
  text('Message', 'What happened.', object => coreEvent(object).message?.trim()),
  wideText('First Seen', 'When the event was first seen.', (object, now) => ageOf(firstSeen(coreEvent(object)), now)),
  wideText('Count', 'How often it was seen.', object => countOf(coreEvent(object))),
  { ...NAME, priority: 1 },
]);

function coreEvent(object: KubeObject): Partial<Event> {
  if (!('regarding' in object)) return object as Event;
  const event = object as RegardingEvent;
  return {
    ...(event.regarding && { involvedObject: event.regarding }),
    ...(event.type !== undefined && { type: event.type }),
    ...(event.reason !== undefined && { reason: event.reason }),
    ...(event.note !== undefined && { message: event.note }),
    ...(event.eventTime !== undefined && { eventTime: event.eventTime }),
    ...(event.series && { series: event.series }),
    ...(event.deprecatedFirstTimestamp !== undefined && { firstTimestamp: event.deprecatedFirstTimestamp }),
    ...(event.deprecatedLastTimestamp !== undefined && { lastTimestamp: event.deprecatedLastTimestamp }),
    ...(event.deprecatedCount !== undefined && { count: event.deprecatedCount }),
    ...(event.deprecatedSource && { source: event.deprecatedSource }),
    ...(event.reportingController !== undefined && { reportingComponent: event.reportingController }),
    ...(event.reportingInstance !== undefined && { reportingInstance: event.reportingInstance }),
  };
}

function firstSeen(event: Partial<Event>): string | undefined {
  return event.firstTimestamp || event.eventTime || undefined;
}

function lastSeen(event: Partial<Event>): string | undefined {
  return event.series?.lastObservedTime || event.lastTimestamp || firstSeen(event);
}

function countOf(event: Partial<Event>): number {
  return event.series?.count ?? (event.count || 1);
}

function targetOf({ involvedObject }: Partial<Event>): string {
  const kind = involvedObject?.kind?.toLowerCase() ?? '';
  return involvedObject?.name ? `${kind}/${involvedObject.name}` : kind;
}

function sourceOf(event: Partial<Event>): string {
  const component = event.source?.component || event.reportingComponent || '';
  const instance = event.source?.host || event.reportingInstance || '';
  return instance === '' ? component : `${component}, ${instance}`;
}
