import type { CertificateItem } from '../../inventory/model.ts';

/** Whose files and names a control plane has. */
export type Layout = 'openshift' | 'kubeadm';

/** What was found without anything installed (spec 80, 10), and what cannot be seen from here. */
export interface Look {
  readonly layout: Layout | undefined;
  readonly items: readonly CertificateItem[];
  /** What cannot be seen, each with what would show it. */
  readonly unseen: readonly string[];
  /** Why the API could not be used, where that is so: what could be seen without it is all there is. */
  readonly failure?: unknown;
}
