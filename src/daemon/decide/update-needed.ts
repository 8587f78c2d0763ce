import {
  CURRENT_CONFIG,
  CURRENT_IMAGE,
  DAEMON_STATE,
  DESIRED_CONFIG,
  DESIRED_IMAGE,
} from '../../machine-config-api/names.ts';

type Annotations = Readonly<Record<string, string>>;

/** A config and, for layered nodes, an image; the image is empty where it is the config's own. */
export interface Target {
  readonly config: string;
  readonly image: string;
}

/** What the disk says the node is in, or is about to be in; undefined where it says nothing. */
export type OnDisk = Target | undefined;

export type UpdateDecision =
  | { readonly kind: 'none' }
  | { readonly kind: 'update'; readonly from: Target; readonly to: Target; readonly why: string }
  | { readonly kind: 'error'; readonly message: string; readonly missingConfig?: string };

/**
 * Whether a node must be updated, and from what to what (spec 60, 5.4). The disk beats the annotations. A node that is where it
 * should be and is not Done is updated onto itself, which is how it leaves Degraded and how a crash after the commit heals.
 */
export function decideUpdate(
  node: Annotations,
  disk: OnDisk,
  hasConfig: (name: string) => boolean,
  nodeName = '',
): UpdateDecision {
  const { [CURRENT_CONFIG]: current, [DESIRED_CONFIG]: desired, [DAEMON_STATE]: state } = node;
  const missing = [DESIRED_CONFIG, CURRENT_CONFIG, DAEMON_STATE].find(key => node[key] === undefined);
  for (const name of [desired, current]) {
    if (name !== undefined && !hasConfig(name)) {
      return { kind: 'error', message: `missing MachineConfig ${name}`, missingConfig: name };
    }
  }
  if (missing !== undefined || desired === undefined || current === undefined) {
    return { kind: 'error', message: missingAnnotation(missing ?? '', nodeName) };
  }
  const to = { config: desired, image: node[DESIRED_IMAGE] ?? '' };
  const from = disk ?? { config: current, image: node[CURRENT_IMAGE] ?? '' };
  if (from.config !== current) return { kind: 'update', from, to, why: 'the disk is ahead of the node' };
  if (!isSameTarget(from, to)) return { kind: 'update', from, to, why: 'another config or image is wanted' };
  if (state === DONE) return { kind: 'none' };
  return { kind: 'update', from, to, why: `in the wanted config, but the state is ${state === '' ? 'empty' : state}` };
}

/** In the words people search for. */
export function missingAnnotation(key: string, nodeName: string): string {
  return `${key} annotation not found on node '${nodeName}'`;
}

const DONE = 'Done';

/** Whether a node is where it should be (spec 60, 10.4.3). */
export function isSameTarget(one: Target, other: Target): boolean {
  return one.config === other.config && one.image === other.image;
}

/** Which way an update goes: by the MachineConfig alone, or by a layered image (spec 60, 5.4, "Trigger rules"). */
export type UpdatePath =
  | { readonly kind: 'machine-config' | 'image' }
  | { readonly kind: 'error'; readonly message: string };

/** The way from one image to the other. There is none back from a layered one. */
export function decideUpdatePath(currentImage: string, desiredImage: string): UpdatePath {
  if (currentImage === '' && desiredImage === '') return { kind: 'machine-config' };
  if (desiredImage !== '') return { kind: 'image' };
  return {
    kind: 'error',
    message: 'rolling back from a layered to non-layered configuration is not currently supported',
  };
}
