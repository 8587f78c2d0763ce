/** What the verbs that regenerate write in place of the end of validity (spec 70, 2.1). */
export const FORCED = 'force-regeneration';
