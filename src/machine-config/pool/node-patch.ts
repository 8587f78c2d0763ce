import type { Taint } from 'kubernetes-types/core/v1.d.ts';

/** A merge patch of a Node. */
export interface NodePatch {
  readonly metadata?: {
    readonly annotations?: Readonly<Record<string, string>>;
    /** Null takes a label away. */
    readonly labels?: Readonly<Record<string, string | null>>;
  };
  readonly spec?: { readonly taints: readonly Taint[] };
}
