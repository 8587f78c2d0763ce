import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Resource } from '../kube/resource.ts';
import type { ContentCheck } from './loadable.ts';
import type { StaticPodOperatorResource, StaticPodOperatorSpec } from './operator.ts';

/** An object by name, in the operand's namespace. */
export interface ListedObject {
  readonly name: string;
  /** May be missing; what is not optional must be there before anything happens. */
  readonly optional?: boolean | undefined;
}

export interface ObjectLists {
  readonly configMaps: readonly ListedObject[];
  readonly secrets: readonly ListedObject[];
}

/** One static-pod operator as data: all its controllers are made from this (spec 30, 1.2 and 1.3). */
export interface StaticPodOperatorConfig {
  /** `kube-apiserver`, `etcd`. */
  readonly operandName: string;
  readonly operandNamespace: string;
  /** Mirror pods are called `<staticPodName>-<node>`. */
  readonly staticPodName: string;
  /** Labels that all operand pods carry. */
  readonly operandLabels: Readonly<Record<string, string>>;
  /** The resource with the instance `cluster`. */
  readonly operator: Resource<StaticPodOperatorResource>;
  /** A change of one of these means a new revision and a restart. The first ConfigMap holds the manifest. */
  readonly revisioned: ObjectLists;
  /** A change of one of these reaches the files on all nodes without a restart. */
  readonly unrevisioned?: (ObjectLists & { readonly directory: string }) | undefined;
  /** What no process could load enters no revision: the last good content stays. Absent: everything is taken for good. */
  readonly contentCheck?: ContentCheck | undefined;
  readonly installer: InstallerConfig;
  readonly pruner?: PrunerConfig | undefined;
  readonly guard?: GuardConfig | undefined;
  /** What runs when all pods have this image (spec 30, 13.6). */
  readonly versions?:
    | { readonly operandImage: string; readonly operand: string; readonly operator: string }
    | undefined;
  readonly topology?: Topology | undefined;
  /** Whether a startup monitor watches new revisions and promotes or takes them back (spec 30, section 17 and T19). */
  readonly startupMonitor?: (() => boolean | Promise<boolean>) | undefined;
  /** Asked before a revision is made; false: not now (spec 30, 22.2). */
  readonly revisionPrecondition?: (() => Promise<boolean>) | undefined;
  /** Asked when all copies of a revision are there, before it is published; false: not yet (spec 30, 22.2). */
  readonly revisionReady?: ((revision: number) => Promise<boolean>) | undefined;
  /** Asked before the operand on a node is replaced; etcd asks for its quorum here. */
  readonly mayDisrupt?: ((disruption: Disruption) => Promise<Permission>) | undefined;
  /** Who else replaces pods on the same nodes: never both at once on one. */
  readonly neighbour?: Neighbour | undefined;
}

/** Another operator that replaces a static pod on the same nodes: no node restarts two things at once (spec 90, HO-5). */
export interface Neighbour {
  readonly operator: Resource<StaticPodOperatorResource>;
  /** Who goes on when both have said that they are about to; the other one takes that back. The two have to differ in this. */
  readonly comesFirst: boolean;
}

/** The replacement of the operand on one node. */
export interface Disruption {
  readonly nodeName: string;
  readonly revision: number;
  /** Whether there is anything to lose: the operand on this node is ready now. */
  readonly isOperandReady: boolean;
}

export type Permission = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

export interface InstallerConfig {
  /** What the installer pod runs; the arguments are added. */
  readonly command: readonly string[];
  readonly image: string;
  /** How long an operand must have been ready before the next node is touched; 0 or absent = off. */
  readonly minReadyMs?: number | undefined;
  /** Changes the finished pod; returns what is to be created. */
  readonly mutatePod?:
    | ((pod: Pod, nodeName: string, spec: StaticPodOperatorSpec, revision: number) => Pod | Promise<Pod>)
    | undefined;
}

export interface PrunerConfig {
  readonly command: readonly string[];
  /** Revision directories on the node are called `<directoryPrefix>-<revision>`. */
  readonly directoryPrefix: string;
}

export interface GuardConfig {
  readonly port: number;
  readonly path: string;
  readonly evictionPolicy?: 'IfHealthyBudget' | 'AlwaysAllow' | undefined;
  /** Whether guards are wanted; undefined: it cannot be told yet. */
  readonly wanted: () => boolean | undefined | Promise<boolean | undefined>;
}

/** Whether the control plane has a single node; undefined: not known yet. */
export type Topology = () => boolean | undefined | Promise<boolean | undefined>;

/** Where things are on a control-plane node (spec 30, section 25). */
export const RESOURCE_DIRECTORY = '/etc/kubernetes/static-pod-resources';
export const MANIFEST_DIRECTORY = '/etc/kubernetes/manifests';
export const LOCK_DIRECTORY = '/var/lock';

/** The name of the operand's mirror pod on a node. */
export function mirrorPodName(
  { staticPodName }: Pick<StaticPodOperatorConfig, 'staticPodName'>,
  nodeName: string,
): string {
  return `${staticPodName}-${nodeName}`;
}
