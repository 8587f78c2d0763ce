import type { HandOverPhase as Phase } from '../inventory/model.ts';
import type { EffectKind } from '../trust/effect.ts';
import type { ObjectRef } from '../trust/object.ts';

/** What will happen, in order. Times are RFC 3339 texts. */
export interface Plan {
  readonly from: string;
  readonly to: string;
  /** What ends in that time, or has ended, because nobody renews it by itself; the first end first. */
  readonly warnings: readonly PlanWarning[];
  readonly events: readonly PlanEvent[];
  /** What could not be foreseen, and why. */
  readonly notes: readonly string[];
}

/** The end of a certificate that no controller renews. */
export interface PlanWarning {
  readonly at: string;
  readonly name: string;
  /** The CA it belongs to, where that is known. */
  readonly authority?: string | undefined;
  /** A command, or in words who can. */
  readonly renewWith: string;
  readonly atItsEnd?: string | undefined;
}

/**
 * One change of one object, with what it does on nodes; or the roll-out of a static pod that such changes lead to.
 * `signer` and `certificate`: made anew; `bundle`: rewritten; `hand-over`: a signer is put to use; `derived`: follows from another
 * object; `renewal`: the leaves of one node of an adopted kubeadm cluster; `rollout`: pods are replaced node after node; `reboot`: machine configuration; `fail`: the rules give up.
 */
export interface PlanEvent {
  readonly at: string;
  readonly change: PlanChange;
  /** Of the hand-over that it belongs to: `Distributing`: a signer is made known; `Signing`: it begins to sign, and leaves follow. */
  readonly phase?: HandOverPhase | undefined;
  readonly object?: ObjectRef | undefined;
  readonly reason: string;
  readonly effects: readonly PlanEffect[];
}

export type HandOverPhase = Extract<Phase, 'Distributing' | 'Signing'>;

export type PlanChange =
  | 'signer'
  | 'certificate'
  | 'bundle'
  | 'hand-over'
  | 'derived'
  | 'rollout'
  | 'renewal'
  | 'reboot'
  | 'fail';

export interface PlanEffect {
  readonly kind: EffectKind | 'reboot' | 'write';
  readonly process: string;
  /** In the order in which they are reached. */
  readonly nodes: readonly string[];
  readonly files?: readonly string[] | undefined;
}
