import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyAlgorithm } from '../pki/keys.ts';
import type { ClusterApi, EmbeddedApiOptions } from './cluster-api.ts';
import type { ClusterPart } from './part.ts';

export const LAYOUT_NAMES = ['openshift', 'kubeadm'] as const;
export type LayoutName = (typeof LAYOUT_NAMES)[number];
export type NodeRole = 'control-plane' | 'worker';

/** What is different from one kind of cluster to another: a cluster on this machine is made from one of these. */
export interface ClusterLayout {
  readonly name: LayoutName;
  /** What says in the API that a node is of a role. */
  labels(role: NodeRole): Readonly<Record<string, string>>;
  /** What runs besides API and nodes, in the order in which it is shown. */
  readonly parts: readonly ClusterPart[];
  /** Programs of its static pods: where one is not found, something stands in for it, and that is said. */
  readonly programs: readonly string[];
  api(options: LayoutApiOptions): Promise<ClusterApi>;
  /** Puts onto the disks of nodes what is there before they start for the first time; absent: nothing is. */
  found?(founding: Founding): Promise<void>;
  /** Brings the objects into the API that installers and absent operators would provide. May be done twice. */
  provide(inputs: LayoutInputs): Promise<void>;
}

export interface LayoutApiOptions extends EmbeddedApiOptions {
  /** Addresses of the control-plane nodes. */
  readonly controlPlane: readonly string[];
}

/** A node as it is known before it runs. */
export interface PlannedNode {
  readonly name: string;
  readonly role: NodeRole;
  readonly address: string;
  readonly root: string;
}

export interface Founding {
  readonly dir: string;
  readonly nodes: readonly PlannedNode[];
  /** Where clients find the API. */
  readonly url: string;
  readonly dayMs: number | undefined;
  readonly keyAlgorithm: KeyAlgorithm | undefined;
}

export interface LayoutInputs extends Founding {
  readonly api: ClusterApi;
  /** What will run. */
  readonly parts: readonly ClusterPart[];
  /** Does something that may be done twice, again while the API is away. */
  patiently<T>(work: () => Promise<T>): Promise<T>;
}

/** Thrown for a folder whose cluster is of another layout. */
export class OtherLayout extends Error {
  override readonly name = 'OtherLayout';

  constructor(dir: string, found: string, wanted: LayoutName) {
    super(
      `expected ${dir} to have a cluster of layout ${wanted} or none, found one of layout ${found}: start it with --layout ${found}, or take another folder`,
    );
  }
}

const FILE = 'layout';
/** Folders of clusters that are older than this file have the layout that was the only one. */
const UNWRITTEN: LayoutName = 'openshift';

/** The layout of the cluster in a folder; undefined: there is none. */
export function layoutIn(dir: string): string | undefined {
  const path = join(dir, FILE);
  if (existsSync(path)) return readFileSync(path, 'utf8').trim();
  return existsSync(join(dir, 'nodes')) ? UNWRITTEN : undefined;
}

/** Makes a folder one of this layout for good. Throws `OtherLayout` where it is one of another. */
export function settleLayout(dir: string, wanted: LayoutName): void {
  const found = layoutIn(dir);
  if (found !== undefined && found !== wanted) throw new OtherLayout(dir, found, wanted);
  const path = join(dir, FILE);
  if (existsSync(path)) return;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.tmp`, `${wanted}\n`);
  renameSync(`${path}.tmp`, path);
}
