/**
 * The value of a Kubernetes quantity such as `10Gi` or `8192`, rounded up to a whole number; undefined for a text that is none.
 */
export function quantityValue(quantity: number | string): number | undefined {
  const [, digits, suffix = '', exponent] = QUANTITY.exec(String(quantity)) ?? [];
  if (digits === undefined) return undefined;
  const scale = exponent === undefined ? SCALES[suffix] : 10 ** Number(exponent);
  return scale === undefined ? undefined : Math.ceil(Number(digits) * scale);
}

const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,3}))?$/;

const SCALES: Readonly<Record<string, number>> = {
  '': 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
