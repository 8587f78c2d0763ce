/**
 * Decodes strict standard base64 (spec 50, RD-4): the alphabet with `+` and `/`, mandatory padding, CR and LF anywhere,
 * nothing else. Undefined for anything a strict decoder refuses, where `Buffer.from` would make something up.
 */
export function decodeStrictBase64(text: string): Buffer | undefined {
  const digits = text.replaceAll(/[\r\n]/g, '');
  if (digits.length % 4 !== 0 || !STANDARD.test(digits)) return undefined;
  return Buffer.from(digits, 'base64');
}

const STANDARD = /^[A-Za-z0-9+/]*={0,2}$/;
