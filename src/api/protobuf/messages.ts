import table from './messages.json' with { type: 'json' };
import { WireError } from './wire.ts';

export const PROTOBUF_MEDIA_TYPE = 'application/vnd.kubernetes.protobuf';

/** Kubernetes puts this before every message, and the message into an envelope that names its kind. */
export const MAGIC = Buffer.from('k8s\0');

/** The name of a field whose message is part of the object itself. */
export const INLINE = '...';

/** A field of a message, as `messages.json` describes it. */
export interface Field {
  readonly name: string;
  readonly shape: 'one' | 'list' | 'map';
  readonly type: string;
  /** A zero value means something: the field is a pointer in Go, or never left out of its JSON. */
  readonly keepsZero: boolean;
}

/** The message of a kind; DeleteOptions carry the group version of the resource they are sent for. */
export function kindOf(apiVersion: string, kind: string): string | undefined {
  const kinds: Readonly<Record<string, string>> = table.kinds;
  if (kind === 'DeleteOptions') return kinds['v1/DeleteOptions'];
  const key = apiVersion === 'policy/v1beta1' && kind === 'Eviction' ? 'policy/v1/Eviction' : `${apiVersion}/${kind}`;
  return Object.hasOwn(kinds, key) ? kinds[key] : undefined;
}

const MESSAGES = new Map<string, ReadonlyMap<number, Field>>();

export function fieldsOf(message: string): ReadonlyMap<number, Field> {
  const known = MESSAGES.get(message);
  if (known !== undefined) return known;
  const text = (table.messages as Readonly<Record<string, string>>)[message];
  if (text === undefined) throw new WireError(`no message ${message} is known`);
  const fields = new Map(text.split('; ').filter(Boolean).map(readField));
  MESSAGES.set(message, fields);
  return fields;
}

/** `4 args []string!`: number, name, type; `!` keeps zero values. */
function readField(line: string): [number, Field] {
  const [number = '', name = '', declared = ''] = line.split(' ');
  const type = declared.replace(/^(?:\[\]|\{\})|!$/g, '');
  const shape = declared.startsWith('[]') ? 'list' : declared.startsWith('{}') ? 'map' : 'one';
  return [Number(number), { name, shape, type, keepsZero: declared.endsWith('!') }];
}
