/**
 * By which version's rules a document is judged. Every version of the spec has its own: what a later one brought does not exist
 * in an earlier document, even where our machines would understand it.
 */
export interface SpecLevel {
  /** The minor version of spec 3. */
  readonly minor: number;
  /** Whether it was written in spec 2, which is translated to 3.0 and judged as that, without what later versions ask for. */
  readonly isFromSpec2: boolean;
  /** Where contents may come from. */
  readonly schemes: ReadonlySet<string>;
}

/** The level of a document of spec 3. */
export function levelOfSpec3(minor: number): SpecLevel {
  return { minor, isFromSpec2: false, schemes: schemesSince(minor) };
}

/** The level of a document of spec 2 once it is one of 3.0. */
export function levelOfSpec2(minor: number): SpecLevel {
  return { minor: 0, isFromSpec2: true, schemes: minor === 0 ? SCHEMES_2_0 : schemesSince(0) };
}

const SCHEME_SINCE: Readonly<Record<string, number>> = { http: 0, https: 0, tftp: 0, s3: 0, data: 0, gs: 2, arn: 4 };
const SCHEMES_2_0 = new Set(['http', 'https', 'data']);

function schemesSince(minor: number): ReadonlySet<string> {
  return new Set(Object.keys(SCHEME_SINCE).filter(scheme => (SCHEME_SINCE[scheme] ?? 0) <= minor));
}
