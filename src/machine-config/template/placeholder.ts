import { TemplateError } from './platform.ts';

const KEY = /^[_a-z]\w*$/;

/** A place that is filled in when a machine asks for its configuration, not before: `{{.key}}`. Throws `TemplateError`. */
export function placeholder(key: string): string {
  if (!KEY.test(key)) throw new TemplateError(`${JSON.stringify(key)} is no key of a placeholder`);
  return `{{.${key}}}`;
}
