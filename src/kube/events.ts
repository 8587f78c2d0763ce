import type { KubeObject, Resource } from './resource.ts';

/** Records what happened, for people to read. Recording never fails the caller (spec 30, 4.1). */
export interface EventRecorder {
  /** The message is data and never a template (spec 30, T16). */
  event(type: EventType, reason: string, message: string): void;
  /** A recorder for a part of this component, named `<component>-<suffix>` (spec 30, 4.5). */
  withComponent(suffix: string): EventRecorder;
}

export type EventType = 'Normal' | 'Warning';

/** One thing that happened, as a recorder hands it on. */
export interface RecordedEvent {
  readonly component: string;
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
}

/** A recorder that gives each event to `sink`; an error thrown there is dropped. */
export function eventsTo(component: string, sink: (event: RecordedEvent) => void): EventRecorder {
  return {
    event(type, reason, message) {
      try {
        sink({ component, type, reason, message });
      } catch {
        // A caller in the middle of its work must not fail because nobody could write down what it did.
      }
    },
    withComponent: suffix => eventsTo(`${component}-${suffix}`, sink),
  };
}

/** A recorder that keeps its events in memory, for tests. */
export function recordingEvents(component = 'test'): EventRecorder & { readonly events: RecordedEvent[] } {
  const events: RecordedEvent[] = [];
  return {
    ...eventsTo(component, event => {
      events.push(event);
    }),
    events,
  };
}

/** Where `reportCreate`, `reportUpdate` and `reportDelete` write to. */
type Recorder = Pick<EventRecorder, 'event'>;

/** `<Kind>Created`, or `<Kind>CreateFailed` when there was an error (spec 30, 6.1.4). */
export function reportCreate(events: Recorder, resource: Resource, object: KubeObject, error?: unknown): void {
  const name = nameForPeople(resource, object);
  if (error === undefined) {
    events.event('Normal', `${resource.kind}Created`, `Created ${name} because it was missing`);
  } else {
    events.event('Warning', `${resource.kind}CreateFailed`, `Failed to create ${name}: ${textOf(error)}`);
  }
}

/** `<Kind>Updated`, with `details` in place of "because it changed", or `<Kind>UpdateFailed`. */
export function reportUpdate(
  events: Recorder,
  resource: Resource,
  object: KubeObject,
  error?: unknown,
  details?: string,
): void {
  const name = nameForPeople(resource, object);
  if (error !== undefined) {
    events.event('Warning', `${resource.kind}UpdateFailed`, `Failed to update ${name}: ${textOf(error)}`);
  } else {
    const why = details === undefined ? ' because it changed' : `:\n${details}`;
    events.event('Normal', `${resource.kind}Updated`, `Updated ${name}${why}`);
  }
}

/** `<Kind>Deleted` or `<Kind>DeleteFailed`. */
export function reportDelete(events: Recorder, resource: Resource, object: KubeObject, error?: unknown): void {
  const name = nameForPeople(resource, object);
  if (error === undefined) events.event('Normal', `${resource.kind}Deleted`, `Deleted ${name}`);
  else events.event('Warning', `${resource.kind}DeleteFailed`, `Failed to delete ${name}: ${textOf(error)}`);
}

/** `<Kind>[.<group>]/<name>[ -n <namespace>]`, the way one would type it after `kubectl get`. */
export function nameForPeople(resource: Resource, object: KubeObject): string {
  const { name = '', namespace } = object.metadata ?? {};
  const kind = resource.group === '' ? resource.kind : `${resource.kind}.${resource.group}`;
  return `${kind}/${name}${namespace ? ` -n ${namespace}` : ''}`;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
