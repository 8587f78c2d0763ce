import { PROTOBUF_MEDIA_TYPE } from '../protobuf/messages.ts';
import { notAcceptable } from '../status.ts';

/** What the answer shall look like. */
export interface Output {
  readonly format: 'json' | 'yaml' | 'protobuf';
  /** Another view of the objects: a table for people, or metadata only. */
  readonly as: 'Table' | 'PartialObjectMetadata' | undefined;
}

interface MediaRange {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly quality: number;
}

const MEDIA_TYPES = ['application/json', 'application/yaml', PROTOBUF_MEDIA_TYPE];
const LONGEST_HEADER = 4096;

/**
 * Chooses the first form we speak among those a client accepts; protocol buffers only for who takes nothing else and where
 * the kind has them. Throws 406.
 */
export function negotiate(header: string | undefined, hasProtobuf: boolean): Output {
  const ranges = mediaRanges(header);
  for (const { type, parameters } of ranges) {
    const format = formatOf(type);
    if (format === undefined || !isKnownStream(parameters)) continue;
    const as = viewOf(parameters);
    if (as !== 'unknown') return { format, as };
  }
  const takesProtobuf = ranges.some(
    ({ type, parameters }) =>
      type === PROTOBUF_MEDIA_TYPE && parameters['as'] === undefined && isKnownStream(parameters),
  );
  if (hasProtobuf && takesProtobuf) return { format: 'protobuf', as: undefined };
  throw notAcceptable(hasProtobuf ? MEDIA_TYPES : MEDIA_TYPES.slice(0, 2));
}

/** What a watch is sent as. Throws 406 for a form that cannot be streamed. */
export function streamType({ format }: Output, hasProtobuf: boolean): string {
  const types = ['application/json;stream=watch', `${PROTOBUF_MEDIA_TYPE};stream=watch`];
  if (format === 'yaml') throw notAcceptable(hasProtobuf ? types : types.slice(0, 1));
  return format === 'protobuf' ? `${PROTOBUF_MEDIA_TYPE};stream=watch` : 'application/json';
}

function isKnownStream({ stream = '' }: MediaRange['parameters']): boolean {
  return stream === '' || stream === 'watch';
}

/** The media ranges of an `Accept` header, the most wanted first. */
export function mediaRanges(header: string | undefined): MediaRange[] {
  if (header === undefined || header.trim() === '') return [{ type: '*/*', parameters: {}, quality: 1 }];
  const ranges = header.slice(0, LONGEST_HEADER).split(',').map(mediaRange);
  return ranges.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality);
}

function mediaRange(text: string): MediaRange {
  const [type = '', ...rest] = text.split(';').map(part => part.trim());
  const parameters = Object.fromEntries(
    rest.map(parameter => {
      const equals = parameter.indexOf('=');
      return equals < 0 ? [parameter, ''] : [parameter.slice(0, equals).toLowerCase(), parameter.slice(equals + 1)];
    }),
  ) as Record<string, string>;
  const quality = Number(parameters['q'] ?? 1);
  return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 0 : quality };
}

function formatOf(type: string): Output['format'] | undefined {
  if (type === '*/*' || type === 'application/*' || type === 'application/json') return 'json';
  return type === 'application/yaml' ? 'yaml' : undefined;
}

function viewOf({ as, g, v }: MediaRange['parameters']): Output['as'] | 'unknown' {
  if (as === undefined) return undefined;
  if (g !== 'meta.k8s.io' || (v !== 'v1' && v !== 'v1beta1')) return 'unknown';
  if (as === 'Table') return v === 'v1' ? 'Table' : 'unknown';
  return as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList' ? 'PartialObjectMetadata' : 'unknown';
}
