import { randomInt, randomUUID } from 'node:crypto';
import type { Random } from './rest/core.ts';

/** Without vowels and look-alikes, so that no words come out. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;

export const systemRandom: Random = {
  uid: () => randomUUID(),
  suffix: () => Array.from({ length: SUFFIX_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join(''),
};
