import { boolYaml11Tag, CORE_SCHEMA, intCoreTag, intYaml11Tag, mergeTag, NOT_RESOLVED, type Schema } from 'js-yaml';

/**
 * YAML as everybody else in a cluster reads it, kubelets included: with the numbers and truths of YAML 1.1, so that `0644` is
 * octal and `yes` is true, but without its times and its base 60.
 */
export const KUBERNETES_YAML: Schema = CORE_SCHEMA.withTags(mergeTag, boolYaml11Tag, {
  ...intYaml11Tag,
  resolve: (source, isExplicit, tagName) => {
    const old = source.includes(':') ? NOT_RESOLVED : intYaml11Tag.resolve(source, isExplicit, tagName);
    return old === NOT_RESOLVED ? intCoreTag.resolve(source, isExplicit, tagName) : old;
  },
});
