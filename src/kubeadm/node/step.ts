import type { Published } from '../exchange.ts';
import type { FileText } from './file-text.ts';
import type { PairPlace } from './places.ts';
import type { BegunPair, LeafFiles } from './sight.ts';

/** One change of a node. Each can be made again after a crash in the middle of it. Texts hold keys: a step is logged by `stepText` alone. */
export type Step =
  /** Ends the change of a pair that somebody died in. */
  | { readonly do: 'end-pair'; readonly begun: BegunPair }
  /** Copies a CA and its key, or the keys of service accounts, into the Secret. */
  | { readonly do: 'publish'; readonly what: Published }
  /** Puts a certificate and its key in place of those that are there. */
  | {
      readonly do: 'place-pair';
      readonly place: PairPlace;
      readonly certificate: string;
      readonly key: string;
      readonly files: { readonly certificate: FileText | undefined; readonly key: FileText | undefined };
      /** Part of a hand-over, which may be taken back. */
      readonly isHandOver: boolean;
    }
  | { readonly do: 'write'; readonly file: FileText; readonly text: string; readonly isHandOver: boolean }
  /** Puts a file back as it was before a hand-over. */
  | { readonly do: 'put-back'; readonly file: FileText }
  /** Makes a leaf anew. */
  | {
      readonly do: 'renew';
      readonly leaf: LeafFiles;
      readonly from: Date;
      readonly signs: string;
      readonly isStopgap?: boolean;
    }
  /** Gets the kubelet another client certificate: signed here by this CA, or asked for. */
  | { readonly do: 'renew-kubelet'; readonly leaf: LeafFiles; readonly from: Date; readonly how: KubeletRenewal }
  | { readonly do: 'restart-kubelet' }
  | { readonly do: 'remove'; readonly paths: readonly string[] }
  /** Nothing of a hand-over is left that could be taken back. */
  | { readonly do: 'forget-before' };

/** `sign`: here, with this CA; `isStopgap`: so that a better one follows soon. `ask-as-node`: with the node's own credentials; `ask-as-agent`: with those of this agent. */
export type KubeletRenewal =
  | { readonly by: 'sign'; readonly signs: string; readonly isStopgap?: boolean }
  | { readonly by: 'ask-as-node' | 'ask-as-agent'; readonly signs: string | undefined };

/** What a step does, for logs and people. */
export function stepText(step: Step): string {
  switch (step.do) {
    case 'end-pair':
      return `end what was begun with ${step.begun.place.certificate}`;
    case 'publish':
      return `copy ${step.what} into its Secret`;
    case 'place-pair':
      return `write ${step.place.certificate} and its key`;
    case 'write':
      return `write ${step.file.path}`;
    case 'put-back':
      return `put ${step.file.path} back as it was`;
    case 'renew':
      return `renew ${step.leaf.file.path}`;
    case 'renew-kubelet':
      return `renew the kubelet's client certificate (${step.how.by})`;
    case 'restart-kubelet':
      return 'restart the kubelet';
    case 'remove':
      return `remove ${step.paths.join(', ')}`;
    case 'forget-before':
      return 'drop the copies from before the hand-over';
  }
}
