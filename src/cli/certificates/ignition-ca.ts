import { contentsOf } from '../../machine-config-api/ignition/contents.ts';
import { base64DataUrl } from '../../machine-config-api/ignition/data-url.ts';

/** What becomes of the user data of a machine. */
export type IgnitionUpdate =
  | { readonly do: 'skip'; readonly because: string }
  | { readonly do: 'refuse'; readonly because: string }
  | { readonly do: 'keep' }
  | { readonly do: 'update'; readonly text: string };

/**
 * The user data with the CAs that machines are to trust at first boot, made by `caFor` from the text of those it has (spec 70, 2.5). The
 * document may be anything: all that is known of it is that somebody called it user data.
 */
export function ignitionWithCa(userData: string, caFor: (stored: string) => string): IgnitionUpdate {
  let document: unknown;
  try {
    document = JSON.parse(userData);
  } catch {
    return { do: 'refuse', because: 'userData is no JSON' };
  }
  const { ignition } = fieldsOf(document);
  if (!isMap(ignition)) return { do: 'skip', because: 'userData has no ignition section' };
  const authorities = fieldsOf(fieldsOf(ignition.security).tls).certificateAuthorities;
  if (!Array.isArray(authorities) || authorities.length === 0) {
    return { do: 'refuse', because: 'userData has no ignition.security.tls.certificateAuthorities' };
  }
  if (authorities.length > 1) {
    return { do: 'refuse', because: `expected one certificate authority in userData, found ${authorities.length}` };
  }
  const authority: unknown = authorities[0];
  if (!isMap(authority) || (authority.source !== undefined && typeof authority.source !== 'string')) {
    return { do: 'refuse', because: 'the certificate authority in userData has no source' };
  }
  const source = base64DataUrl(caFor(storedText(authority)));
  if (authority.source === source) return { do: 'keep' };
  authority.source = source;
  // They belong to the old content: with them no machine would take the new one.
  delete authority.verification;
  delete authority.compression;
  return { do: 'update', text: JSON.stringify(document) };
}

/** The texts of the CAs that machines with this user data trust at first boot; undefined where no machine could boot with it. */
export function authoritiesIn(userData: string): string[] | undefined {
  let document: unknown;
  try {
    document = JSON.parse(userData);
  } catch {
    return undefined;
  }
  const { ignition } = fieldsOf(document);
  const authorities = fieldsOf(fieldsOf(fieldsOf(ignition).security).tls).certificateAuthorities;
  return Array.isArray(authorities) ? authorities.map(authority => storedText(fieldsOf(authority))) : undefined;
}

/** The text of a data URL; empty for a source that is somewhere else or cannot be read. */
function storedText(authority: Fields): string {
  try {
    return contentsOf(authority).toString('latin1');
  } catch {
    return '';
  }
}

type Fields = Record<string, unknown>;

function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldsOf(value: unknown): Fields {
  return isMap(value) ? value : {};
}
