import { nested, valueAt } from '../target-config/merge.ts';
import type { Observer } from './observation.ts';

const PATH = ['corsAllowedOrigins'];
const OWN_MACHINE: readonly string[] = ['//127\\.0\\.0\\.1(:|$)', '//localhost(:|$)'];

/** Whose web pages may ask the API: those of the own machine and those that the user names, as regular expressions. */
export const corsAllowedOrigins: Observer = {
  paths: [PATH],
  observe({ apiServer }, previous) {
    const origins = [...new Set([...OWN_MACHINE, ...(apiServer?.spec?.additionalCORSAllowedOrigins ?? [])])].sort();
    const before = valueAt(previous, PATH);
    const old = Array.isArray(before) ? (before as readonly string[]) : OWN_MACHINE;
    const isSame = new Set(old).symmetricDifference(new Set(origins)).size === 0;
    const message = `corsAllowedOrigins changed to [${origins.map(origin => JSON.stringify(origin)).join(' ')}]`;
    return {
      config: nested(PATH, origins),
      events: isSame ? [] : [{ type: 'Normal', reason: 'ObserveAdditionalCORSAllowedOrigins', message }],
    };
  },
};
