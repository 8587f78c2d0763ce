import { int32, ref, str, vocabulary } from '../dsl.ts';
import { type FieldError, invalid } from '../field-error.ts';
import { isObject } from '../json.ts';
import type { JsonObject } from '../schema.ts';
import { microTime, ObjectMeta, time } from './meta.ts';
import { ObjectReference } from './reference.ts';

/** Events, in the core group and in events.k8s.io: two views of the same stored objects. */

const core = vocabulary('io.k8s.api.core.v1', '', 'v1');
const events = vocabulary('io.k8s.api.events.v1', 'events.k8s.io', 'v1');

const metadata = ref(ObjectMeta, 'Standard metadata of the object.');

const EventSource = core.object('EventSource', 'Who reports an event.', {
  component: str('Component that reports it.'),
  host: str('Node it happened on.'),
});

export const CoreEvent = core.kind(
  'Event',
  'Something that happened to an object. Kept for a limited time.',
  {
    action: str('What was done about the object.'),
    count: int32('How often it happened.'),
    eventTime: microTime('When it first happened.'),
    firstTimestamp: time('When it was first recorded.'),
    involvedObject: ref(ObjectReference, 'The object it is about.'),
    lastTimestamp: time('When it was last recorded.'),
    message: str('What happened, for people.'),
    metadata,
    reason: str('What happened, in one word for programs.'),
    related: ref(ObjectReference, 'Another object that has to do with it.'),
    reportingComponent: str('Controller that reports it, such as `kubernetes.io/kubelet`.', { default: '' }),
    reportingInstance: str('Instance of that controller.', { default: '' }),
    series: ref(
      core.object('EventSeries', 'A series of the same event.', {
        count: int32('How often it happened in this series.'),
        lastObservedTime: microTime('When it last happened.'),
      }),
      'The series it belongs to.',
    ),
    source: ref(EventSource, 'Who reports it.'),
    type: str('`Normal` or `Warning`.'),
  },
  { required: ['involvedObject'], zero: ['metadata'], check: event => namespaceErrors(event, 'involvedObject') },
);

export const Event = events.kind(
  'Event',
  'Something that happened to an object. Kept for a limited time.',
  {
    action: str('What was done about the object.'),
    deprecatedCount: int32('`count` of the core kind.'),
    deprecatedFirstTimestamp: time('`firstTimestamp` of the core kind.'),
    deprecatedLastTimestamp: time('`lastTimestamp` of the core kind.'),
    deprecatedSource: ref(EventSource, '`source` of the core kind.'),
    eventTime: microTime('When it first happened.'),
    metadata,
    note: str('What happened, for people; at most 1 kB.', { maxLength: 1024 }),
    reason: str('What happened, in one word for programs.'),
    regarding: ref(ObjectReference, 'The object it is about.'),
    related: ref(ObjectReference, 'Another object that has to do with it.'),
    reportingController: str('Controller that reports it, such as `kubernetes.io/kubelet`.'),
    reportingInstance: str('Instance of that controller.'),
    series: ref(
      events.object(
        'EventSeries',
        'A series of the same event.',
        {
          count: int32('How often it happened in this series.'),
          lastObservedTime: microTime('When it last happened.'),
        },
        { zero: ['count', 'lastObservedTime'] },
      ),
      'The series it belongs to.',
    ),
    type: str('`Normal` or `Warning`.'),
  },
  { zero: ['eventTime'], check: event => namespaceErrors(event, 'regarding') },
);

/** An event lies in the namespace of what it is about; that of something without a namespace, in `default`. */
function namespaceErrors(event: JsonObject, about: string): FieldError[] {
  const own = namespaceOf(event['metadata']);
  const other = namespaceOf(event[about]);
  const agree = own === other || (other === '' && own === 'default');
  return agree ? [] : [invalid(`${about}.namespace`, other, 'does not match event.namespace')];
}

function namespaceOf(value: unknown): string {
  const namespace = isObject(value) ? value['namespace'] : undefined;
  return typeof namespace === 'string' ? namespace : '';
}
