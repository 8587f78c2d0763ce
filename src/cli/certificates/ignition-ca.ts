/** What becomes of the user data of a machine. */
export type IgnitionUpdate =
  | { readonly do: 'skip'; readonly because: string }
  | { readonly do: 'refuse'; readonly because: string }
  | { readonly do: 'keep' }
  | { readonly do: 'update'; readonly text: string };

interface Authority {
  source?: string;
}

/** The user data with this CA as the only one it trusts at first boot (spec 70, 2.5). */
export function ignitionWithCa(userData: string, ca: string): IgnitionUpdate {
  let document: { ignition?: { security?: { tls?: { certificateAuthorities?: Authority[] } } } };
  try {
    document = JSON.parse(userData) as typeof document;
  } catch {
    return { do: 'refuse', because: 'userData is no JSON' };
  }
  if (typeof document !== 'object' || document === null || typeof document.ignition !== 'object') {
    return { do: 'skip', because: 'userData has no ignition section' };
  }
  const authorities = document.ignition.security?.tls?.certificateAuthorities;
  if (!Array.isArray(authorities) || authorities.length === 0) {
    return { do: 'refuse', because: 'userData has no ignition.security.tls.certificateAuthorities' };
  }
  if (authorities.length > 1) {
    return { do: 'refuse', because: `expected one certificate authority in userData, found ${authorities.length}` };
  }
  const source = `data:text/plain;charset=utf-8;base64,${Buffer.from(ca).toString('base64')}`;
  const [authority] = authorities as [Authority];
  if (authority.source === source) return { do: 'keep' };
  authority.source = source;
  return { do: 'update', text: JSON.stringify(document) };
}
