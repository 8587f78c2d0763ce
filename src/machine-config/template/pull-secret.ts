import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { globalPullSecretText } from '../source/pull-secret.ts';
import { TemplateError } from './platform.ts';

/** The pull secret as machines get it: of the right type, JSON, without blanks, in its own order (spec 50, 3.7). */
export function renderedPullSecret(secret: Secret | undefined): string {
  return compactJson(globalPullSecretText(secret));
}

/** JSON without blanks between its parts; members keep their order. Throws `TemplateError` for a text that is none. */
export function compactJson(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    // The parser quotes its input, which is secret.
    throw new TemplateError('the pull secret is not JSON');
  }
  return text.replaceAll(/("(?:[^"\\]|\\.)*")|\s+/g, (_match, literal: string | undefined) => literal ?? '');
}
